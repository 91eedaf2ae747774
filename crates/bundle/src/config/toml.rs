//! TOML.

use toml_edit::{Document, Item, TableLike, Value as Ast};

use super::tree::{ConfigText, Entry, Node, Value};
use crate::{BundleError, ConfigFault};

pub(super) fn parse(file: &ConfigText) -> Result<Node, BundleError> {
    let document = Document::parse(file.text.as_str()).map_err(|error| {
        let offset = error.span().map_or(0, |span| span.start);
        file.fault(offset, ConfigFault::Syntax(format!("not TOML: {}", error.message().trim())))
    })?;
    table(file, document.as_table(), 0)
}

fn table(file: &ConfigText, table: &dyn TableLike, offset: usize) -> Result<Node, BundleError> {
    let mut entries = Vec::new();
    for (name, item) in table.iter() {
        let span = table.key(name).and_then(toml_edit::Key::span);
        let key_offset = span.or_else(|| item.span()).map_or(offset, |span| span.start);
        entries.push(Entry { key: name.to_owned(), key_offset, node: convert(file, item, key_offset)? });
    }
    // A table's members may be spread over the file; notes and errors are in its order.
    entries.sort_by_key(|entry| entry.key_offset);
    Ok(Node { value: Value::Table(entries), offset })
}

fn convert(file: &ConfigText, item: &Item, above: usize) -> Result<Node, BundleError> {
    let offset = item.span().map_or(above, |span| span.start);
    match item {
        Item::None => Ok(Node { value: Value::Null, offset }),
        Item::Value(value) => scalar(file, value, offset),
        Item::Table(inner) => table(file, inner, offset),
        Item::ArrayOfTables(tables) => {
            let mut nodes = Vec::new();
            for inner in tables {
                nodes.push(table(file, inner, inner.span().map_or(offset, |span| span.start))?);
            }
            Ok(Node { value: Value::List(nodes), offset })
        }
    }
}

fn scalar(file: &ConfigText, value: &Ast, offset: usize) -> Result<Node, BundleError> {
    let value = match value {
        Ast::String(text) => Value::Text(text.value().clone()),
        Ast::Integer(number) => Value::Number(number.value().to_string()),
        Ast::Float(number) => {
            let json = serde_json::Number::from_f64(*number.value());
            let json = json.ok_or_else(|| {
                let problem =
                    format!("`{}` has no JSON: a value here must be a finite number", number.value());
                file.fault(offset, ConfigFault::Syntax(problem))
            })?;
            Value::Number(json.to_string())
        }
        Ast::Boolean(value) => Value::Bool(*value.value()),
        // As Wrangler reads it: a string for JavaScript.
        Ast::Datetime(time) => Value::Text(time.value().to_string()),
        Ast::Array(list) => {
            let mut nodes = Vec::new();
            for value in list {
                nodes.push(scalar(file, value, value.span().map_or(offset, |span| span.start))?);
            }
            Value::List(nodes)
        }
        Ast::InlineTable(inner) => return table(file, inner, offset),
    };
    Ok(Node { value, offset })
}
