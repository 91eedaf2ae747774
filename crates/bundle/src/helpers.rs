//! Modules of our own that generated code imports. They are part of the application like any other module.

/// What generated code says before a helper's name.
pub(crate) const PACKAGE: &str = "holdfast:bundle";

const HELPERS: &[(&str, &str)] = &[
    ("decorate", include_str!("helpers/decorate.js")),
    ("decorateMetadata", include_str!("helpers/decorateMetadata.js")),
    ("decorateParam", include_str!("helpers/decorateParam.js")),
    ("namespace", include_str!("helpers/namespace.js")),
    ("usingCtx", include_str!("helpers/usingCtx.js")),
];

/// The specifier of the helper that turns a namespace into what `require` answers.
pub(crate) const NAMESPACE: &str = "holdfast:bundle/helpers/namespace";

/// What a module that a package switches off for the edge is instead.
pub(crate) const EMPTY: &str = "holdfast:bundle/empty";

/// The source of a helper by its specifier.
pub(crate) fn source(specifier: &str) -> Option<&'static str> {
    let name = specifier.strip_prefix(PACKAGE)?.strip_prefix("/helpers/")?;
    HELPERS.iter().find(|(known, _)| *known == name).map(|(_, source)| *source)
}
