//! The folder of static files: every file of it by its path and hash. Bytes stay on the disk.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use holdfast_assets::{Headers, Redirects};
use holdfast_records::{AssetFile, Assets, BlobEntry, Blobs, Sha256};
use holdfast_types::ContentHash;
use ignore::WalkBuilder;
use ignore::gitignore::{Gitignore, GitignoreBuilder};

use crate::config::{AssetsUse, Config};
use crate::place::Place;
use crate::{BundleError, Limits};

/// What says which files are not shipped, as `.gitignore` does.
const IGNORE_FILE: &str = ".assetsignore";
const HEADERS_FILE: &str = "_headers";
const REDIRECTS_FILE: &str = "_redirects";
/// What adapters of frameworks call the Worker that they build.
const WORKER: &str = "_worker.js";
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
    walk.standard_filters(false).hidden(false);
    let ignored = ignored(&root)?;
    walk.filter_entry(move |entry| {
        let name = entry.file_name().to_string_lossy();
        let is_dir = entry.file_type().is_some_and(|kind| kind.is_dir());
        let is_never = NEVER.iter().any(|never| name == *never)
            || NEVER_BEGINS.iter().any(|never| name.starts_with(never));
        // The folder itself is what was asked for, whatever it is called.
        entry.depth() == 0 || !(is_never || ignored.matched(entry.path(), is_dir).is_ignore())
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
        if inner == WORKER || inner.starts_with(&format!("{WORKER}/")) {
            return Err(BundleError::Folder(format!(
                "`{}` is code of a Worker, and everybody could read it: write `{WORKER}` into `{IGNORE_FILE}`",
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

/// What `.assetsignore` says.
fn ignored(root: &Path) -> Result<Gitignore, BundleError> {
    let path = root.join(IGNORE_FILE);
    let wrong = |error: ignore::Error| BundleError::Folder(format!("`{}`: {error}", path.display()));
    let mut builder = GitignoreBuilder::new(root);
    builder.case_insensitive(true).map_err(wrong)?;
    if path.is_file()
        && let Some(error) = builder.add(&path)
    {
        return Err(wrong(error));
    }
    builder.build().map_err(wrong)
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
