//! One JavaScript or TypeScript file: parsed, checked, definitions put in, types and JSX taken out. What is done with the
//! result is the caller's; the syntax tree lives only as long as the call.

mod commonjs;
mod emit;
mod es_module;
mod settings;

use std::path::Path;

use oxc_allocator::Allocator;
use oxc_ast::ast::{Decorator, Program};
use oxc_ast_visit::{VisitJs, walk_js};
use oxc_diagnostics::{OxcDiagnostic, Severity};
use oxc_parser::{ParseOptions, Parser, ParserReturn};
use oxc_semantic::{Scoping, SemanticBuilder};
use oxc_span::{SourceType, Span};
use oxc_transformer::Transformer;
use oxc_transformer_plugins::{ReplaceGlobalDefines, ReplaceGlobalDefinesConfig};

use crate::{BundleError, Place};

pub(crate) use commonjs::{CommonJs, Required, quoted, wrap};
pub(crate) use emit::{Rewrites, emit};
pub(crate) use es_module::{EsModule, NAMESPACE_MEMBER, Request, RequestKind};
pub(crate) use settings::Settings;

/// A file's text and what is known of it from outside.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unit<'a> {
    /// Its name in messages.
    pub(crate) name: &'a str,
    pub(crate) text: &'a str,
    pub(crate) language: Language,
    /// Whether its package says that `.js` is an ES module.
    pub(crate) is_package_esm: bool,
    pub(crate) settings: &'a Settings,
    pub(crate) defines: &'a ReplaceGlobalDefinesConfig,
}

/// What a file's extension says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Language {
    pub(crate) is_typescript: bool,
    has_jsx: bool,
    system: ModuleSystem,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ModuleSystem {
    Unknown,
    EsModule,
    CommonJs,
}

impl Language {
    /// By the extension; none for what is no program.
    pub(crate) fn of(path: &Path) -> Option<Self> {
        use ModuleSystem::{CommonJs, EsModule, Unknown};
        let (is_typescript, has_jsx, system) = match path.extension()?.to_str()? {
            "js" => (false, false, Unknown),
            "jsx" => (false, true, Unknown),
            "mjs" => (false, false, EsModule),
            "cjs" => (false, false, CommonJs),
            "ts" => (true, false, Unknown),
            "tsx" => (true, true, Unknown),
            "mts" => (true, false, EsModule),
            "cts" => (true, false, CommonJs),
            _ => return None,
        };
        let stem = path.file_stem()?.to_str()?;
        // Declarations hold nothing that runs.
        if is_typescript && (stem.ends_with(".d") || stem == "d") {
            return None;
        }
        Some(Self { is_typescript, has_jsx, system })
    }

    /// A module of our own.
    pub(crate) const fn own() -> Self {
        Self { is_typescript: false, has_jsx: false, system: ModuleSystem::EsModule }
    }

    /// Whether `import x from` a CommonJS module means `module.exports`, whatever `__esModule` says, as in Node.
    pub(crate) fn is_node_mode(self, is_package_esm: bool) -> bool {
        self.system == ModuleSystem::EsModule || (self.system == ModuleSystem::Unknown && is_package_esm)
    }

    fn source_type(self) -> SourceType {
        // CommonJS ends up in a function of an ES module, so that what strict code forbids is an error here, and not
        // where the application starts.
        SourceType::mjs().with_typescript(self.is_typescript).with_jsx(self.has_jsx)
    }
}

/// A file that is ready to be looked at and written.
pub(crate) struct Ready<'p, 'a> {
    pub(crate) allocator: &'a Allocator,
    pub(crate) program: &'p mut Program<'a>,
    pub(crate) scoping: &'p Scoping,
    pub(crate) is_commonjs: bool,
}

/// Prepares a file and hands it over.
///
/// # Errors
/// [`BundleError::Code`] with the first fault of the file.
pub(crate) fn with_program<T>(
    unit: &Unit<'_>,
    then: impl FnOnce(Ready<'_, '_>) -> T,
) -> Result<T, BundleError> {
    let allocator = Allocator::default();
    let ParserReturn { mut program, module_record, .. } = parse(unit, &allocator)?;
    let semantic = SemanticBuilder::new()
        .with_check_syntax_error(true)
        .with_excess_capacity(2.0)
        .with_enum_eval(true)
        .build(&program);
    check(unit, &semantic.diagnostics)?;
    let mut scoping = semantic.semantic.into_scoping();
    let is_commonjs = is_commonjs(unit, module_record.has_module_syntax, &scoping);

    let replaced = ReplaceGlobalDefines::new(&allocator, unit.defines.clone()).build(scoping, &mut program);
    scoping = replaced.scoping;
    if replaced.changed {
        let again = SemanticBuilder::new().with_excess_capacity(2.0).with_enum_eval(true).build(&program);
        scoping = again.semantic.into_scoping();
    }
    if is_commonjs {
        // So that what the transformer adds is a `require`.
        program.source_type = program.source_type.with_commonjs(true);
    }
    let path = Path::new(unit.name);
    let transformed = Transformer::new(&allocator, path, &unit.settings.transform)
        .build_with_scoping(scoping, &mut program);
    check(unit, &transformed.diagnostics)?;
    let mut decorators = Decorators::default();
    decorators.visit_program(&program);
    if let Some(span) = decorators.first {
        let message = "decorators are supported as TypeScript's \"experimentalDecorators\" alone: \
            set that in tsconfig.json";
        return Err(fault(unit, span.start as usize, message.into()));
    }
    let ready =
        Ready { allocator: &allocator, program: &mut program, scoping: &transformed.scoping, is_commonjs };
    Ok(then(ready))
}

fn parse<'a>(unit: &Unit<'a>, allocator: &'a Allocator) -> Result<ParserReturn<'a>, BundleError> {
    let source_type = unit.language.source_type();
    let parsed = Parser::new(allocator, unit.text, source_type).parse();
    let Err(error) = check(unit, &parsed.diagnostics) else { return Ok(parsed) };
    if unit.language.system == ModuleSystem::EsModule {
        return Err(error);
    }
    // Nothing but a CommonJS file returns at its top.
    let options = ParseOptions { allow_return_outside_function: true, ..ParseOptions::default() };
    let again = Parser::new(allocator, unit.text, source_type).with_options(options).parse();
    if check(unit, &again.diagnostics).is_ok() && !again.module_record.has_module_syntax {
        return Ok(again);
    }
    Err(error)
}

fn is_commonjs(unit: &Unit<'_>, has_module_syntax: bool, scoping: &Scoping) -> bool {
    if has_module_syntax {
        return false;
    }
    match unit.language.system {
        ModuleSystem::CommonJs => true,
        ModuleSystem::EsModule => false,
        ModuleSystem::Unknown => {
            let free = scoping.root_unresolved_references();
            let has = |name: &str| free.keys().any(|free| free.as_str() == name);
            !unit.is_package_esm && ["module", "exports", "require"].into_iter().any(has)
        }
    }
}

/// The first error among diagnostics, in its place.
fn check(unit: &Unit<'_>, diagnostics: &[OxcDiagnostic]) -> Result<(), BundleError> {
    let Some(first) = diagnostics.iter().find(|diagnostic| diagnostic.severity == Severity::Error) else {
        return Ok(());
    };
    let offset = first.labels.first().map_or(0, |label| label.offset() as usize);
    let help = first.help.as_ref().map_or_else(String::new, |help| format!(" ({help})"));
    Err(fault(unit, offset, format!("{}{help}", first.message)))
}

fn fault(unit: &Unit<'_>, offset: usize, message: String) -> BundleError {
    BundleError::Code { place: Place::at(unit.name, unit.text, offset), message }
}

/// Finds a decorator that the transformer left.
#[derive(Default)]
struct Decorators {
    first: Option<Span>,
}

impl<'a> VisitJs<'a> for Decorators {
    fn visit_decorator(&mut self, decorator: &Decorator<'a>) {
        self.first.get_or_insert(decorator.span);
        walk_js::walk_decorator(self, decorator);
    }
}
