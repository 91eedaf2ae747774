//! What an ES module asks of others and gives to them, after types are gone.

use std::collections::{BTreeMap, BTreeSet};

use oxc_ast::ast::{
    BindingPattern, Declaration, ExportAllDeclaration, ExportFromDeclaration, Expression, ImportDeclaration,
    ImportDeclarationSpecifier, ImportExpression, ImportPhase, Program, Statement, StaticMemberExpression,
};
use oxc_ast_visit::{VisitJs, walk_js};
use oxc_span::Span;

/// One module that is asked for.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) specifier: String,
    /// Where it is first asked for, in bytes; none for what a transform added.
    pub(crate) offset: Option<usize>,
    pub(crate) kind: RequestKind,
    /// The names that are imported, and where.
    pub(crate) names: BTreeMap<String, usize>,
    /// `import source` and the like.
    pub(crate) phase: Option<&'static str>,
}

/// How a module is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum RequestKind {
    /// By a declaration.
    Import,
    /// By `import()`.
    Dynamic,
    /// By `require()`.
    Require {
        /// Its failure is caught.
        is_tried: bool,
    },
}

/// An ES module's imports and exports.
#[derive(Debug, Default)]
pub(crate) struct EsModule {
    pub(crate) requests: Vec<Request>,
    /// Names that it exports itself, `default` among them.
    pub(crate) exports: BTreeSet<String>,
    /// Specifiers of `export * from`.
    pub(crate) stars: Vec<String>,
    /// Where an `import()` cannot be followed.
    pub(crate) computed: Vec<usize>,
}

impl EsModule {
    /// Looks at a program.
    pub(crate) fn of(program: &Program<'_>) -> Self {
        let mut scan = Scan::default();
        for statement in &program.body {
            scan.take(statement);
        }
        scan.visit_program(program);
        scan.module
    }
}

#[derive(Default)]
struct Scan {
    module: EsModule,
    /// Local names of namespaces, by the request that they belong to.
    namespaces: BTreeMap<String, usize>,
}

impl EsModule {
    fn request(&mut self, specifier: &str, span: Span, kind: RequestKind) -> usize {
        let offset = (!span.is_unspanned()).then_some(span.start as usize);
        let known = self.requests.iter().position(|known| known.specifier == specifier && known.kind == kind);
        known.unwrap_or_else(|| {
            let specifier = specifier.to_owned();
            self.requests.push(Request { specifier, offset, kind, names: BTreeMap::new(), phase: None });
            self.requests.len() - 1
        })
    }
}

impl Scan {
    fn take(&mut self, statement: &Statement<'_>) {
        match statement {
            Statement::ImportDeclaration(import) => self.import(import),
            Statement::ExportFromDeclaration(export) => self.export_from(export),
            Statement::ExportAllDeclaration(export) => self.export_all(export),
            Statement::ExportDefaultDeclaration(_) => {
                self.module.exports.insert("default".into());
            }
            Statement::ExportNamedDeclaration(export) => {
                let names = export.specifiers.iter().map(|specifier| specifier.exported.name().to_string());
                self.module.exports.extend(names);
            }
            Statement::ExportDeclaration(export) => {
                declared(&export.declaration, &mut |name| {
                    self.module.exports.insert(name.to_owned());
                });
            }
            _ => {}
        }
    }

    fn import(&mut self, import: &ImportDeclaration<'_>) {
        let index = self.module.request(&import.source.value, import.source.span, RequestKind::Import);
        self.module.requests[index].phase = import.phase.map(|phase| match phase {
            ImportPhase::Source => "source",
            ImportPhase::Defer => "defer",
        });
        for specifier in import.specifiers.iter().flatten() {
            let (name, span) = match specifier {
                ImportDeclarationSpecifier::ImportSpecifier(it) => (it.imported.name().to_string(), it.span),
                ImportDeclarationSpecifier::ImportDefaultSpecifier(it) => ("default".to_owned(), it.span),
                ImportDeclarationSpecifier::ImportNamespaceSpecifier(it) => {
                    self.namespaces.insert(it.local.name.to_string(), index);
                    continue;
                }
            };
            self.module.requests[index].names.entry(name).or_insert(span.start as usize);
        }
    }

    fn export_from(&mut self, export: &ExportFromDeclaration<'_>) {
        let index = self.module.request(&export.source.value, export.source.span, RequestKind::Import);
        for specifier in &export.specifiers {
            let local = specifier.local.name().to_string();
            self.module.requests[index].names.entry(local).or_insert(specifier.span.start as usize);
            self.module.exports.insert(specifier.exported.name().to_string());
        }
    }

    fn export_all(&mut self, export: &ExportAllDeclaration<'_>) {
        self.module.request(&export.source.value, export.source.span, RequestKind::Import);
        match &export.exported {
            Some(name) => {
                self.module.exports.insert(name.name().to_string());
            }
            None => self.module.stars.push(export.source.value.to_string()),
        }
    }
}

/// The names that a declaration binds.
fn declared(declaration: &Declaration<'_>, take: &mut impl FnMut(&str)) {
    match declaration {
        Declaration::VariableDeclaration(variables) => {
            for variable in &variables.declarations {
                bound(&variable.id, take);
            }
        }
        Declaration::FunctionDeclaration(function) => function.id.iter().for_each(|id| take(&id.name)),
        Declaration::ClassDeclaration(class) => class.id.iter().for_each(|id| take(&id.name)),
        _ => {}
    }
}

fn bound(pattern: &BindingPattern<'_>, take: &mut impl FnMut(&str)) {
    for id in pattern.get_binding_identifiers() {
        take(&id.name);
    }
}

impl<'a> VisitJs<'a> for Scan {
    fn visit_import_expression(&mut self, import: &ImportExpression<'a>) {
        match literal(&import.source) {
            Some(specifier) => {
                self.module.request(specifier, import.span, RequestKind::Dynamic);
            }
            None => self.module.computed.push(import.span.start as usize),
        }
        walk_js::walk_import_expression(self, import);
    }

    fn visit_static_member_expression(&mut self, member: &StaticMemberExpression<'a>) {
        // What a namespace is asked for; a local variable of the same name asks for too much, which does no harm.
        if let Expression::Identifier(object) = &member.object
            && let Some(index) = self.namespaces.get(object.name.as_str())
        {
            let offset = member.span.start as usize;
            let names = &mut self.module.requests[*index].names;
            names.entry(format!("{NAMESPACE_MEMBER}{}", member.property.name)).or_insert(offset);
        }
        walk_js::walk_static_member_expression(self, member);
    }
}

/// Marks a name that is read from a namespace: where it is missing, it is `undefined` and no error.
pub(crate) const NAMESPACE_MEMBER: char = '.';

/// A specifier that is written out.
pub(super) fn literal<'p>(expression: &'p Expression<'_>) -> Option<&'p str> {
    match expression {
        Expression::StringLiteral(text) => Some(text.value.as_str()),
        Expression::TemplateLiteral(text) if text.expressions.is_empty() => {
            text.quasis.first().and_then(|quasi| quasi.value.cooked.as_ref()).map(|cooked| cooked.as_str())
        }
        _ => None,
    }
}
