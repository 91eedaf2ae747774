//! How TypeScript and JSX are taken out of a file, as its tsconfig.json says.

use std::borrow::Cow;

use oxc_resolver::CompilerOptions;
use oxc_transformer::{HelperLoaderMode, JsxRuntime, TransformOptions};

use crate::helpers;

/// Settings of the files below one tsconfig.json.
#[derive(Debug)]
pub(crate) struct Settings {
    pub(super) transform: TransformOptions,
}

impl Settings {
    /// Those of a file without a tsconfig.json.
    pub(crate) fn plain() -> Self {
        let mut transform = TransformOptions::default();
        transform.helper_loader.mode = HelperLoaderMode::Runtime;
        transform.helper_loader.module_name = Cow::Borrowed(helpers::PACKAGE);
        // The engine has all of the language up to 2025, and no `using`.
        transform.env.es2026.explicit_resource_management = true;
        Self { transform }
    }

    /// Those that a tsconfig.json gives.
    pub(crate) fn of(options: &CompilerOptions) -> Self {
        let mut settings = Self::plain();
        let transform = &mut settings.transform;
        transform.decorator.legacy = options.experimental_decorators == Some(true);
        transform.decorator.emit_decorator_metadata = options.emit_decorator_metadata == Some(true);
        transform.decorator.strict_null_checks =
            options.strict_null_checks.or(options.strict).unwrap_or(false);
        transform.typescript.only_remove_type_imports = options.verbatim_module_syntax == Some(true);
        if options.use_define_for_class_fields == Some(false) {
            transform.assumptions.set_public_class_fields = true;
            transform.typescript.remove_class_fields_without_initializer = true;
            transform.env.es2022.class_properties = Some(Default::default());
        }
        settings.set_jsx(options);
        settings
    }

    fn set_jsx(&mut self, options: &CompilerOptions) {
        let (jsx, typescript) = (&mut self.transform.jsx, &mut self.transform.typescript);
        match options.jsx.as_deref() {
            Some("react-jsxdev") => {
                jsx.runtime = JsxRuntime::Automatic;
                jsx.development = true;
            }
            Some("react-jsx") => jsx.runtime = JsxRuntime::Automatic,
            // `preserve` and `react-native` leave JSX to a bundler: it is what a bundler makes of it by default.
            _ => jsx.runtime = JsxRuntime::Classic,
        }
        if let Some(source) = &options.jsx_import_source {
            jsx.runtime = JsxRuntime::Automatic;
            jsx.import_source = Some(source.clone());
        }
        if let Some(factory) = &options.jsx_factory {
            typescript.jsx_pragma = Cow::Owned(factory.clone());
            jsx.pragma = Some(factory.clone());
        }
        if let Some(fragment) = &options.jsx_fragment_factory {
            typescript.jsx_pragma_frag = Cow::Owned(fragment.clone());
            jsx.pragma_frag = Some(fragment.clone());
        }
        if jsx.runtime == JsxRuntime::Automatic {
            // Babel's rule: the automatic runtime takes no factory.
            (jsx.pragma, jsx.pragma_frag) = (None, None);
        }
    }
}
