//! `assets`: the folder of static files, and how paths lead to them.

use holdfast_assets::Site;
use holdfast_records::{Binding, BindingEntry, HtmlHandling, NotFoundHandling};

use super::read::{Reader, Spot};
use super::sections::identifier;
use super::tree::{Entry, Node, Value};
use crate::BundleError;

const KEY: &str = "assets";
const KNOWN: &[&str] = &["directory", "binding", "html_handling", "not_found_handling", "run_worker_first"];
/// Patterns of `run_worker_first`, as on Cloudflare.
const PATTERNS_MAX: usize = 100;

/// What a configuration says of static files.
#[derive(Debug)]
pub(crate) struct AssetsUse {
    /// The folder, relative to the configuration.
    pub(crate) directory: Spot,
    binding: Option<Spot>,
    pub(crate) html_handling: HtmlHandling,
    pub(crate) not_found_handling: NotFoundHandling,
    pub(crate) run_worker_first: Vec<String>,
    /// Where `run_worker_first` stands.
    first_at: Option<usize>,
}

impl AssetsUse {
    /// What only makes sense with a Worker.
    pub(super) fn check(&self, reader: &Reader<'_>, has_worker: bool) -> Result<(), BundleError> {
        if has_worker {
            return Ok(());
        }
        match (&self.binding, self.first_at) {
            (Some(binding), _) => Err(reader.wrong_value(
                "assets.binding",
                binding,
                "is for a Worker, and there is none: name its file as `main`",
            )),
            (None, Some(offset)) if !self.run_worker_first.is_empty() => {
                Err(reader.missing(offset, "main", "the Worker that `assets.run_worker_first` is about"))
            }
            _ => Ok(()),
        }
    }

    pub(super) fn binding_entry(&self) -> Option<(usize, BindingEntry)> {
        let Spot { text, offset } = self.binding.clone()?;
        Some((offset, BindingEntry { name: text, binding: Binding::Assets }))
    }
}

/// Reads the section.
pub(super) fn assets(reader: &Reader<'_>, node: &Node) -> Result<AssetsUse, BundleError> {
    let (mut directory, mut binding, mut first_at) = (None, None, None);
    let mut html_handling = HtmlHandling::default();
    let mut not_found_handling = NotFoundHandling::default();
    let mut run_worker_first = Vec::new();
    for entry in reader.table(KEY, node)? {
        match entry.key.as_str() {
            "directory" => directory = Some(reader.text("assets.directory", &entry.node)?),
            "binding" => {
                let name = reader.text("assets.binding", &entry.node)?;
                binding = Some(identifier(reader, "assets.binding", name)?);
            }
            "html_handling" => {
                html_handling = one_of(
                    reader,
                    "assets.html_handling",
                    entry,
                    &[
                        ("auto-trailing-slash", HtmlHandling::AutoTrailingSlash),
                        ("force-trailing-slash", HtmlHandling::ForceTrailingSlash),
                        ("drop-trailing-slash", HtmlHandling::DropTrailingSlash),
                        ("none", HtmlHandling::None),
                    ],
                )?;
            }
            "not_found_handling" => {
                not_found_handling = one_of(
                    reader,
                    "assets.not_found_handling",
                    entry,
                    &[
                        ("none", NotFoundHandling::None),
                        ("404-page", NotFoundHandling::Page),
                        ("single-page-application", NotFoundHandling::SinglePageApplication),
                    ],
                )?;
            }
            "run_worker_first" => {
                first_at = Some(entry.key_offset);
                run_worker_first = patterns(reader, &entry.node)?;
            }
            _ => return Err(reader.unknown(KEY, entry, KNOWN)),
        }
    }
    let directory = directory
        .ok_or_else(|| reader.missing(node.offset, "assets.directory", "the folder with the static files"))?;
    Ok(AssetsUse { directory, binding, html_handling, not_found_handling, run_worker_first, first_at })
}

fn one_of<T: Copy>(
    reader: &Reader<'_>,
    key: &str,
    entry: &Entry,
    values: &[(&str, T)],
) -> Result<T, BundleError> {
    let text = reader.text(key, &entry.node)?;
    let found = values.iter().find(|(name, _)| *name == text.text);
    let names: Vec<&str> = values.iter().map(|(name, _)| *name).collect();
    found
        .map(|(_, value)| *value)
        .ok_or_else(|| reader.wrong_value(key, &text, format!("is not one of {}", names.join(", "))))
}

/// Whether always, or where.
fn patterns(reader: &Reader<'_>, node: &Node) -> Result<Vec<String>, BundleError> {
    const KEY: &str = "assets.run_worker_first";
    if let Value::Bool(_) = node.value {
        let always = reader.flag(KEY, node)?;
        return Ok(if always { vec!["/*".to_owned()] } else { Vec::new() });
    }
    let patterns = reader.texts(KEY, node)?;
    if let Some(over) = patterns.get(PATTERNS_MAX) {
        return Err(reader.wrong_value(KEY, over, format!("is one more than the limit of {PATTERNS_MAX}")));
    }
    if let Some((pattern, problem)) =
        patterns.iter().find_map(|pattern| Some((pattern, Site::check_worker_first(&pattern.text)?)))
    {
        return Err(reader.wrong_value(KEY, pattern, problem));
    }
    if patterns.iter().all(|pattern| pattern.text.starts_with('!'))
        && let Some(first) = patterns.first()
    {
        let problem = "only says where the Worker is not first: add where it is, such as \"/*\"";
        return Err(reader.wrong_value(KEY, first, problem));
    }
    Ok(patterns.into_iter().map(|pattern| pattern.text).collect())
}
