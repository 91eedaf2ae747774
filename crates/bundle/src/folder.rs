//! The folder of static files: every file of it by its path and hash. Bytes stay on the disk.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use holdfast_assets::{Headers, Redirects};
use holdfast_records::{AssetFile, Assets, BlobEntry, Blobs, Sha256};
use holdfast_types::ContentHash;
use ignore::WalkBuilder;

use crate::config::{AssetsUse, Config};
use crate::place::Place;
use crate::{BundleError, Limits};

/// What says which files are not shipped, as `.gitignore` does.
const IGNORE_FILE: &str = ".assetsignore";
const HEADERS_FILE: &str = "_headers";
const REDIRECTS_FILE: &str = "_redirects";
/// Never shipped, wherever they lie.
const NEVER: [&str; 5] = [".git", "node_modules", ".DS_Store", ".holdfast", ".wrangler"];
/// Nor what begins like this: secrets of a machine.
const NEVER_BEGINS: [&str; 2] = [".env", ".dev.vars"];
/// Largest `_headers` or `_redirects`, in bytes.
const RULES_LEN_MAX: u64 = 4 << 20;

/// What was found.
#[derive(Debug, Default)]
pub(crate) struct Folder {
    pub(crate) assets: Option<Assets>,
    /// `_headers` and `_redirects`.
    pub(crate) blobs: Blobs,
    /// Where each file is.
    pub(crate) files: BTreeMap<ContentHash, PathBuf>,
    pub(crate) notes: Vec<String>,
    /// What a watcher should look at: the folders, the files, the rules.
    pub(crate) watched: Vec<PathBuf>,
}

/// Reads the folder that a configuration names, if it does.
pub(crate) fn read(config: &Config, limits: &Limits) -> Result<Folder, BundleError> {
    let Some(wanted) = &config.assets else { return Ok(Folder::default()) };
    let root = config.dir.join(&wanted.directory.text);
    let root = std::fs::canonicalize(&root).ok().filter(|root| root.is_dir()).ok_or_else(|| {
        config.value_fault(
            "assets.directory",
            &wanted.directory,
            "is not a folder; the path is relative to the configuration",
        )
    })?;
    let mut folder = Folder::default();
    let mut found: Vec<AssetFile> = Vec::new();
    let rules = [HEADERS_FILE, REDIRECTS_FILE, IGNORE_FILE];
    let mut walk = WalkBuilder::new(&root);
    walk.standard_filters(false).hidden(false).add_custom_ignore_filename(IGNORE_FILE);
    walk.filter_entry(|entry| {
        let name = entry.file_name().to_string_lossy();
        !NEVER.iter().any(|never| name == *never) && !NEVER_BEGINS.iter().any(|never| name.starts_with(never))
    });
    walk.sort_by_file_name(Ord::cmp);
    for entry in walk.build() {
        let entry = entry.map_err(|error| BundleError::Folder(error.to_string()))?;
        let path = entry.path();
        let inner = path.strip_prefix(&root).expect("the walk stays below its root");
        let Some(kind) = entry.file_type() else { continue };
        if kind.is_symlink() {
            folder.notes.push(format!("`{}` is a link and is not shipped", path.display()));
            continue;
        }
        folder.watched.push(path.to_owned());
        if !kind.is_file() || rules.iter().any(|rule| inner == Path::new(rule)) {
            continue;
        }
        let Some(inner) = inner.to_str() else {
            return Err(BundleError::Folder(format!("the name of `{}` is not UTF-8", path.display())));
        };
        if inner == "_worker.js" {
            return Err(BundleError::Folder(format!(
                "`{}` would be shipped as a static file: write `_worker.js` into `{IGNORE_FILE}`, or name it as `main`",
                path.display()
            )));
        }
        if inner.starts_with("-/") {
            folder
                .notes
                .push(format!("`{}` is never reached: paths below `/-/` are Holdfast's own", path.display()));
        }
        let content = hash(path, limits)?;
        found.push(AssetFile { path: format!("/{inner}"), content });
        folder.files.insert(content.sha256, path.to_owned());
        if found.len() > limits.asset_files_max {
            let max = limits.asset_files_max;
            return Err(BundleError::TooManyFiles { dir: root.display().to_string(), max });
        }
    }
    found.sort_by(|one, other| one.path.cmp(&other.path));
    let headers = rules_file(&root, HEADERS_FILE, &mut folder, |text| Headers::parse(text).err())?;
    let redirects = rules_file(&root, REDIRECTS_FILE, &mut folder, |text| Redirects::parse(text).err())?;
    folder.assets = Some(described(config, wanted, found, (headers, redirects)));
    Ok(folder)
}

fn described(
    config: &Config,
    wanted: &AssetsUse,
    files: Vec<AssetFile>,
    (headers, redirects): (Option<BlobEntry>, Option<BlobEntry>),
) -> Assets {
    Assets {
        files,
        html_handling: wanted.html_handling,
        not_found_handling: wanted.not_found_handling,
        run_worker_first: wanted.run_worker_first.clone(),
        is_alone: config.main.is_none(),
        headers,
        redirects,
    }
}

fn unreadable(path: &Path) -> impl Fn(std::io::Error) -> BundleError {
    let path = path.display().to_string();
    move |source| BundleError::Read { path: path.clone(), source }
}

/// What a file's bytes are, read piece by piece.
fn hash(path: &Path, limits: &Limits) -> Result<BlobEntry, BundleError> {
    let unreadable = unreadable(path);
    let mut file = File::open(path).map_err(&unreadable)?;
    let mut digest = Sha256::new();
    let mut buffer = vec![0; 64 << 10];
    let mut bytes = 0;
    loop {
        let len = file.read(&mut buffer).map_err(&unreadable)?;
        if len == 0 {
            return Ok(BlobEntry { sha256: digest.finish(), bytes });
        }
        digest.update(&buffer[..len]);
        bytes += len as u64;
        if bytes > limits.asset_bytes_max {
            let max = limits.asset_bytes_max;
            let bytes = std::fs::metadata(path).map_or(bytes, |data| data.len());
            return Err(BundleError::FileTooLarge { file: path.display().to_string(), bytes, max });
        }
    }
}

fn rules_file(
    root: &Path,
    name: &str,
    folder: &mut Folder,
    check: impl Fn(&str) -> Option<holdfast_assets::RuleError>,
) -> Result<Option<BlobEntry>, BundleError> {
    let path = root.join(name);
    if !path.is_file() {
        return Ok(None);
    }
    let bytes = std::fs::metadata(&path).map_err(unreadable(&path))?.len();
    if bytes > RULES_LEN_MAX {
        return Err(BundleError::FileTooLarge {
            file: path.display().to_string(),
            bytes,
            max: RULES_LEN_MAX,
        });
    }
    let text = std::fs::read_to_string(&path).map_err(unreadable(&path))?;
    if let Some(error) = check(&text) {
        let before: usize = text.split_inclusive('\n').take(error.line - 1).map(str::len).sum();
        let place = Place::at(&path.display().to_string(), &text, before);
        return Err(BundleError::Code { place, message: error.problem });
    }
    Ok(Some(folder.blobs.add(text.into_bytes())))
}
