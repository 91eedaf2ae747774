//! Which files are text, data or WebAssembly: the project's rules first, then Wrangler's own.

use holdfast_records::ModuleKind;

/// What a rule makes of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RuleKind {
    Text,
    Data,
    Wasm,
}

impl RuleKind {
    pub(crate) const fn module_kind(self) -> ModuleKind {
        match self {
            Self::Text => ModuleKind::Text,
            Self::Data => ModuleKind::Data,
            Self::Wasm => ModuleKind::Wasm,
        }
    }
}

/// A rule of the project.
#[derive(Clone, Debug)]
pub(crate) struct Rule {
    pub(crate) kind: RuleKind,
    pub(crate) globs: Vec<String>,
    /// Whether later rules of the same kind, Wrangler's own among them, count as well.
    pub(crate) falls_through: bool,
}

const DEFAULTS: [(RuleKind, &[&str]); 3] = [
    (RuleKind::Text, &["**/*.txt", "**/*.html", "**/*.sql"]),
    (RuleKind::Data, &["**/*.bin"]),
    (RuleKind::Wasm, &["**/*.wasm"]),
];

/// The kind of a file by the rules, `name` being its path below the project. As in Wrangler a rule without
/// `fallthrough` replaces the later rules of its kind.
pub(crate) fn kind_of(rules: &[Rule], name: &str) -> Option<RuleKind> {
    let is_match = |glob: &str| fast_glob::glob_match(glob, name);
    let mut closed: Vec<RuleKind> = Vec::new();
    for rule in rules {
        if closed.contains(&rule.kind) {
            continue;
        }
        if rule.globs.iter().any(|glob| is_match(glob)) {
            return Some(rule.kind);
        }
        if !rule.falls_through {
            closed.push(rule.kind);
        }
    }
    let defaults = DEFAULTS.iter().filter(|(kind, _)| !closed.contains(kind));
    defaults.into_iter().find(|(_, globs)| globs.iter().any(|glob| is_match(glob))).map(|(kind, _)| *kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_replaces_later_rules_of_its_kind_unless_it_falls_through() {
        let rule =
            |falls_through| vec![Rule { kind: RuleKind::Text, globs: vec!["**/*.md".into()], falls_through }];
        assert_eq!(kind_of(&[], "a/b.html"), Some(RuleKind::Text));
        assert_eq!(kind_of(&[], "b.bin"), Some(RuleKind::Data));
        assert_eq!(kind_of(&[], "node_modules/x/y.wasm"), Some(RuleKind::Wasm));
        assert_eq!(kind_of(&[], "b.md"), None);
        assert_eq!(kind_of(&rule(false), "doc/b.md"), Some(RuleKind::Text));
        assert_eq!(kind_of(&rule(false), "b.txt"), None);
        assert_eq!(kind_of(&rule(true), "b.txt"), Some(RuleKind::Text));
        assert_eq!(kind_of(&rule(false), "b.bin"), Some(RuleKind::Data));
    }
}
