//! Writes a prepared file: specifiers become names of modules, and a source map leads back.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use oxc_allocator::Allocator;
use oxc_ast::ast::{
    ExportAllDeclaration, ExportFromDeclaration, ExportNamedDeclaration, Expression, ImportDeclaration,
    ImportDeclarationSpecifier, ImportExpression, Str, StringLiteral,
};
use oxc_ast_visit::{VisitJsMut, walk_js_mut};
use oxc_codegen::{Codegen, CodegenOptions, CommentOptions, IndentChar};

use super::es_module::literal;
use super::{Ready, Unit};

/// What to write instead.
#[derive(Debug, Default)]
pub(crate) struct Rewrites {
    /// Names of modules by specifier; what is not there stays.
    pub(crate) specifiers: BTreeMap<String, String>,
    /// Imports, by specifier and name, of what is only a type: they go, and exports of them go with them.
    pub(crate) types: BTreeSet<(String, String)>,
}

/// A written file.
#[derive(Debug)]
pub(crate) struct Emitted {
    pub(crate) code: String,
    /// Version 3, as JSON text.
    pub(crate) source_map: String,
}

/// Writes.
pub(crate) fn emit(
    unit: &Unit<'_>,
    ready: Ready<'_, '_>,
    rewrites: &Rewrites,
    lines_before: usize,
) -> Emitted {
    let Ready { allocator, program, .. } = ready;
    let mut rewriter = Rewriter { allocator, rewrites, dropped: BTreeSet::new() };
    rewriter.visit_program(program);
    let options = CodegenOptions {
        source_map_path: Some(PathBuf::from(unit.name)),
        indent_char: IndentChar::Space,
        indent_width: 2,
        // Licences go along with the code that they are for.
        comments: CommentOptions {
            normal: false,
            jsdoc: false,
            annotation: false,
            ..CommentOptions::default()
        },
        ..CodegenOptions::default()
    };
    let written = Codegen::new().with_options(options).build(program);
    let map = written.map.map(|map| map.to_json());
    let (names, mappings) = map.map_or_else(Default::default, |map| (map.names, map.mappings));
    // The source's text is not repeated: whoever has the map has the project.
    let source_map = serde_json::json!({
        "version": 3,
        "sources": [unit.name],
        "names": names,
        "mappings": format!("{}{mappings}", ";".repeat(lines_before)),
    });
    Emitted { code: written.code, source_map: source_map.to_string() }
}

struct Rewriter<'a, 'r> {
    allocator: &'a Allocator,
    rewrites: &'r Rewrites,
    /// Local names of imports that went.
    dropped: BTreeSet<String>,
}

impl<'a> Rewriter<'a, '_> {
    fn rename(&self, source: &mut StringLiteral<'a>) {
        if let Some(name) = self.rewrites.specifiers.get(source.value.as_str()) {
            source.value = Str::from(self.allocator.alloc_str(name) as &'a str);
            source.raw = None;
        }
    }

    fn is_type(&self, specifier: &str, name: &str) -> bool {
        !self.rewrites.types.is_empty()
            && self.rewrites.types.contains(&(specifier.to_owned(), name.to_owned()))
    }
}

impl<'a> VisitJsMut<'a> for Rewriter<'a, '_> {
    fn visit_import_declaration(&mut self, import: &mut ImportDeclaration<'a>) {
        let specifier = import.source.value.to_string();
        let mut dropped = Vec::new();
        if let Some(specifiers) = &mut import.specifiers {
            specifiers.retain(|it| {
                let (name, local) = match it {
                    ImportDeclarationSpecifier::ImportSpecifier(it) => {
                        (it.imported.name().to_string(), &it.local)
                    }
                    ImportDeclarationSpecifier::ImportDefaultSpecifier(it) => {
                        ("default".to_owned(), &it.local)
                    }
                    ImportDeclarationSpecifier::ImportNamespaceSpecifier(_) => return true,
                };
                let is_type = self.is_type(&specifier, &name);
                if is_type {
                    dropped.push(local.name.to_string());
                }
                !is_type
            });
        }
        self.dropped.extend(dropped);
        self.rename(&mut import.source);
        import.with_clause = None;
    }

    fn visit_export_from_declaration(&mut self, export: &mut ExportFromDeclaration<'a>) {
        let specifier = export.source.value.to_string();
        export.specifiers.retain(|it| !self.is_type(&specifier, &it.local.name()));
        self.rename(&mut export.source);
        export.with_clause = None;
    }

    fn visit_export_named_declaration(&mut self, export: &mut ExportNamedDeclaration<'a>) {
        // Imports stand before what exports them in all but odd files; there the engine names what is missing.
        export.specifiers.retain(|it| !self.dropped.contains(it.local.name().as_str()));
    }

    fn visit_export_all_declaration(&mut self, export: &mut ExportAllDeclaration<'a>) {
        self.rename(&mut export.source);
        export.with_clause = None;
    }

    fn visit_import_expression(&mut self, import: &mut ImportExpression<'a>) {
        if let Some(name) = literal(&import.source).and_then(|text| self.rewrites.specifiers.get(text)) {
            let text: &'a str = self.allocator.alloc_str(name);
            match &mut import.source {
                Expression::StringLiteral(literal) => {
                    literal.value = Str::from(text);
                    literal.raw = None;
                }
                Expression::TemplateLiteral(template) => {
                    if let Some(quasi) = template.quasis.first_mut() {
                        quasi.value.raw = Str::from(text);
                        quasi.value.cooked = Some(Str::from(text));
                    }
                }
                _ => {}
            }
            import.options = None;
        }
        walk_js_mut::walk_import_expression(self, import);
    }
}
