//! JSON with comments and trailing commas, and nothing looser.

use jsonc_parser::ast::{ObjectPropName, Value as Ast};
use jsonc_parser::common::Ranged as _;
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};

use super::tree::{ConfigText, Entry, Node, Value};
use crate::{BundleError, ConfigFault};

pub(super) fn parse(file: &ConfigText) -> Result<Node, BundleError> {
    let options = ParseOptions {
        allow_comments: true,
        allow_trailing_commas: true,
        allow_loose_object_property_names: false,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        allow_bare_decimal_point_numbers: false,
        allow_non_finite_numbers: false,
        allow_extended_string_escapes: false,
    };
    let parsed = parse_to_ast(&file.text, &CollectOptions::default(), &options).map_err(|error| {
        file.fault(error.range().start, ConfigFault::Syntax(format!("not JSON: {}", error.kind())))
    })?;
    match parsed.value {
        Some(value) => convert(file, value),
        None => Err(file.fault(0, ConfigFault::Syntax("not JSON: the file is empty".into()))),
    }
}

fn convert(file: &ConfigText, ast: Ast<'_>) -> Result<Node, BundleError> {
    let offset = ast.start();
    let value = match ast {
        Ast::StringLit(text) => Value::Text(text.value.into_owned()),
        Ast::NumberLit(number) => Value::Number(number.value.to_owned()),
        Ast::BooleanLit(value) => Value::Bool(value.value),
        Ast::NullKeyword(_) => Value::Null,
        Ast::Array(list) => {
            let nodes: Result<_, _> = list.elements.into_iter().map(|node| convert(file, node)).collect();
            Value::List(nodes?)
        }
        Ast::Object(table) => {
            let mut entries = Vec::new();
            for property in table.properties {
                let key_offset = match &property.name {
                    ObjectPropName::String(name) => name.range.start,
                    ObjectPropName::Word(name) => name.range.start,
                };
                let key = property.name.into_string();
                entries.push(Entry { key, key_offset, node: convert(file, property.value)? });
            }
            file.check_twice(&entries)?;
            Value::Table(entries)
        }
    };
    Ok(Node { value, offset })
}
