//! CommonJS: what a file requires, which names it exports as far as its text shows, and the ES module that it becomes.

use std::collections::{BTreeMap, BTreeSet};

use oxc_ast::ast::{
    Argument, AssignmentExpression, AssignmentTarget, CallExpression, Expression, ImportExpression,
    ObjectExpression, ObjectPropertyKind, Program, TryStatement,
};
use oxc_ast_visit::{VisitJs, walk_js};
use oxc_semantic::Scoping;

use super::es_module::{Request, RequestKind, literal};

/// A CommonJS file's requests and exports.
#[derive(Debug, Default)]
pub(crate) struct CommonJs {
    pub(crate) requests: Vec<Request>,
    /// Names that are assigned to `exports`.
    pub(crate) exports: BTreeSet<String>,
    /// Specifiers whose exports it hands on.
    pub(crate) reexports: Vec<String>,
    pub(crate) computed: Vec<usize>,
}

impl CommonJs {
    /// Looks at a program.
    pub(crate) fn of(program: &Program<'_>, scoping: &Scoping) -> Self {
        let mut scan = Scan { found: Self::default(), scoping, tries: 0 };
        scan.visit_program(program);
        scan.found
    }
}

struct Scan<'s> {
    found: CommonJs,
    scoping: &'s Scoping,
    /// How many `try` blocks are around.
    tries: u32,
}

impl Scan<'_> {
    /// Whether the expression is the file's own `name`, and no variable of it.
    fn is_free(&self, expression: &Expression<'_>, name: &str) -> bool {
        let Expression::Identifier(id) = expression else { return false };
        if id.name.as_str() != name {
            return false;
        }
        id.reference_id.get().is_none_or(|reference| !self.scoping.has_binding(reference))
    }

    fn is_exports(&self, expression: &Expression<'_>) -> bool {
        if self.is_free(expression, "exports") {
            return true;
        }
        match expression {
            Expression::StaticMemberExpression(member) => {
                member.property.name == "exports" && self.is_free(&member.object, "module")
            }
            // `module.exports = exports = …`, `Object.assign(module.exports, …)`
            Expression::AssignmentExpression(assignment) => self.is_exports_target(&assignment.left),
            Expression::ParenthesizedExpression(inner) => self.is_exports(&inner.expression),
            _ => false,
        }
    }

    fn is_exports_target(&self, target: &AssignmentTarget<'_>) -> bool {
        match target {
            AssignmentTarget::StaticMemberExpression(member) => {
                member.property.name == "exports" && self.is_free(&member.object, "module")
            }
            _ => false,
        }
    }

    /// The specifier of `require("…")`.
    fn required<'p>(&self, expression: &'p Expression<'_>) -> Option<&'p str> {
        match expression {
            Expression::CallExpression(call) => self.required_by(call),
            Expression::ParenthesizedExpression(inner) => self.required(&inner.expression),
            _ => None,
        }
    }

    fn required_by<'p>(&self, call: &'p CallExpression<'_>) -> Option<&'p str> {
        if !self.is_free(&call.callee, "require") || call.arguments.len() != 1 {
            return None;
        }
        literal(call.arguments.first()?.as_expression()?)
    }

    /// `module.exports = …`.
    fn replaced(&mut self, value: &Expression<'_>) {
        match value {
            Expression::ObjectExpression(object) => self.members(object),
            Expression::AssignmentExpression(inner) => self.replaced(&inner.right),
            Expression::ParenthesizedExpression(inner) => self.replaced(&inner.expression),
            Expression::CallExpression(call) => {
                if let Some(specifier) = self.required_by(call) {
                    self.found.reexports.push(specifier.to_owned());
                }
            }
            _ => {}
        }
    }

    fn members(&mut self, object: &ObjectExpression<'_>) {
        for property in &object.properties {
            match property {
                ObjectPropertyKind::ObjectProperty(property) if !property.computed => {
                    let name = property.key.static_name();
                    self.found.exports.extend(name.map(|name| name.into_owned()));
                }
                ObjectPropertyKind::SpreadProperty(spread) => {
                    if let Some(specifier) = self.required(&spread.argument) {
                        self.found.reexports.push(specifier.to_owned());
                    }
                }
                ObjectPropertyKind::ObjectProperty(_) => {}
            }
        }
    }

    fn request(&mut self, specifier: &str, offset: u32, kind: RequestKind) {
        let specifier = specifier.to_owned();
        // The first request with an open failure decides, so that one that is not caught is an error.
        if let Some(known) = self.found.requests.iter_mut().find(|known| known.specifier == specifier) {
            if known.kind == (RequestKind::Require { is_tried: true }) {
                known.kind = kind;
            }
            return;
        }
        let offset = Some(offset as usize);
        self.found.requests.push(Request { specifier, offset, kind, names: BTreeMap::new(), phase: None });
    }

    /// Calls that put names on `exports`: `Object.defineProperty`, and the helpers of compilers.
    fn helper_call(&mut self, call: &CallExpression<'_>) {
        let Some(name) = call.callee_name() else { return };
        let argument = |index: usize| call.arguments.get(index).and_then(Argument::as_expression);
        let on_exports = argument(0).is_some_and(|first| self.is_exports(first));
        match (name, argument(1)) {
            ("defineProperty", Some(key)) if on_exports => {
                self.found.exports.extend(literal(key).map(ToOwned::to_owned));
            }
            ("assign", Some(Expression::ObjectExpression(object))) if on_exports => self.members(object),
            // swc and esbuild: `_export(exports, { a: () => a })`.
            (name, Some(Expression::ObjectExpression(object))) if on_exports && name.contains("export") => {
                self.members(object);
            }
            // TypeScript and swc: `__exportStar(require("…"), exports)`; older: `__export(require("…"))`.
            (name, _) if name.to_ascii_lowercase().contains("export") => {
                let specifier = argument(0).and_then(|first| self.required(first)).map(ToOwned::to_owned);
                self.found.reexports.extend(specifier);
            }
            _ => {}
        }
    }
}

impl<'a> VisitJs<'a> for Scan<'_> {
    fn visit_call_expression(&mut self, call: &CallExpression<'a>) {
        if let Some(specifier) = self.required_by(call) {
            let kind = RequestKind::Require { is_tried: self.tries > 0 };
            self.request(specifier, call.span.start, kind);
        } else if self.is_free(&call.callee, "require") && !call.arguments.is_empty() {
            self.found.computed.push(call.span.start as usize);
        } else {
            self.helper_call(call);
        }
        walk_js::walk_call_expression(self, call);
    }

    fn visit_import_expression(&mut self, import: &ImportExpression<'a>) {
        match literal(&import.source) {
            Some(specifier) => {
                let offset = Some(import.span.start as usize);
                let (specifier, names) = (specifier.to_owned(), BTreeMap::new());
                let kind = RequestKind::Dynamic;
                let known = |known: &Request| known.specifier == specifier && known.kind == kind;
                if !self.found.requests.iter().any(known) {
                    self.found.requests.push(Request { specifier, offset, kind, names, phase: None });
                }
            }
            None => self.found.computed.push(import.span.start as usize),
        }
        walk_js::walk_import_expression(self, import);
    }

    fn visit_assignment_expression(&mut self, assignment: &AssignmentExpression<'a>) {
        match &assignment.left {
            AssignmentTarget::StaticMemberExpression(member) => {
                if self.is_exports(&member.object) {
                    self.found.exports.insert(member.property.name.to_string());
                } else if self.is_exports_target(&assignment.left) {
                    self.replaced(&assignment.right);
                }
            }
            AssignmentTarget::ComputedMemberExpression(member) if self.is_exports(&member.object) => {
                self.found.exports.extend(literal(&member.expression).map(ToOwned::to_owned));
            }
            _ => {}
        }
        walk_js::walk_assignment_expression(self, assignment);
    }

    fn visit_try_statement(&mut self, statement: &TryStatement<'a>) {
        let caught = u32::from(statement.handler.is_some());
        self.tries += caught;
        self.visit_block_statement(&statement.block);
        self.tries -= caught;
        if let Some(handler) = &statement.handler {
            self.visit_catch_clause(handler);
        }
        if let Some(finalizer) = &statement.finalizer {
            self.visit_block_statement(finalizer);
        }
    }
}

/// What `require` answers for one specifier.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Required {
    /// Another CommonJS module, run when it is first required.
    CommonJs(String),
    /// An ES module's exports.
    EsModule(String),
    /// A module whose value is its default export: JSON, text, data.
    Value(String),
    /// A module of the runtime.
    Builtin(String),
    /// Nothing: the file is ready for that.
    Missing,
}

/// A string in JavaScript.
pub(crate) fn quoted(text: &str) -> String {
    // JSON spells two characters as they are that old programs cannot have in a string; new ones can.
    serde_json::Value::from(text).to_string()
}

/// The ES module around a CommonJS file's code, which begins on its second line. The module runs nothing by itself:
/// `$require` runs the code once, when something first requires it, so that order and cycles are as in Node.
pub(crate) fn wrap(name: &str, code: &str, requires: &BTreeMap<String, Required>) -> String {
    let mut head = String::new();
    let mut cases = String::new();
    for (index, (specifier, required)) in requires.iter().enumerate() {
        let (import, value) = match required {
            Required::CommonJs(module) => {
                (format!("import {{ $require as ${index} }} from {};", quoted(module)), format!("${index}()"))
            }
            Required::EsModule(module) => {
                (format!("import * as ${index} from {};", quoted(module)), format!("$toCommonJs(${index})"))
            }
            Required::Value(module) => {
                (format!("import ${index} from {};", quoted(module)), format!("${index}"))
            }
            Required::Builtin(module) => (
                format!("import * as ${index} from {};", quoted(module)),
                format!("${index}.default ?? ${index}"),
            ),
            Required::Missing => continue,
        };
        head.push_str(&import);
        cases.push_str(&format!("    case {}: return {value};\n", quoted(specifier)));
    }
    if requires.values().any(|required| matches!(required, Required::EsModule(_))) {
        let helper = quoted(crate::helpers::NAMESPACE);
        head.push_str(&format!("import {{ toCommonJs as $toCommonJs }} from {helper};"));
    }
    let file = quoted(&format!("/{name}"));
    let directory = quoted(&format!("/{}", name.rsplit_once('/').map_or("", |(directory, _)| directory)));
    let name = quoted(name);
    // Function declarations and `var` alone: in a cycle this module's parts are used before it has run.
    format!(
        "{head}function $load(exports, require, module, __filename, __dirname, global) {{\n\
         {code}\n\
         }}\n\
         function $request(specifier) {{\n  switch (specifier) {{\n{cases}  }}\n  \
         const error = new Error(`Cannot find module '${{specifier}}', required by '` + {name} + \"'\");\n  \
         error.code = \"MODULE_NOT_FOUND\";\n  throw error;\n}}\n\
         var $module;\n\
         export function $require() {{\n  if ($module === undefined) {{\n    \
         const module = $module = {{ exports: {{}}, id: {file}, filename: {file}, loaded: false, children: [], paths: [] }};\n    \
         try {{\n      $load.call(module.exports, module.exports, $request, module, {file}, {directory}, globalThis);\n      \
         module.loaded = true;\n    }} catch (error) {{\n      $module = undefined;\n      throw error;\n    }}\n  }}\n  \
         return $module.exports;\n}}\n"
    )
}
