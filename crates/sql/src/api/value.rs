//! Values as they come in: Hrana's tagged form, and plain JSON.

use std::borrow::Cow;
use std::fmt;

use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use serde::de::{self, Deserialize, Deserializer, MapAccess, Unexpected, Visitor};

use super::json::JsonOut;
use crate::error::SqlFailure;
use crate::ffi::Column;

/// Hrana's blobs come with or without padding.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// A value to bind.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value<'a> {
    Null,
    Integer(i64),
    Float(f64),
    Text(Cow<'a, str>),
    Blob(Vec<u8>),
}

impl Value<'_> {
    pub(super) fn as_column(&self) -> Column<'_> {
        match self {
            Self::Null => Column::Null,
            Self::Integer(integer) => Column::Integer(*integer),
            Self::Float(float) => Column::Float(*float),
            Self::Text(text) => Column::Text(text.as_bytes()),
            Self::Blob(blob) => Column::Blob(blob),
        }
    }
}

fn decode_base64<E: de::Error>(text: &str) -> Result<Vec<u8>, E> {
    BASE64.decode(text).map_err(|error| E::custom(format!("a blob is not base64: {error}")))
}

/// A value in Hrana's form, `{"type": "integer", "value": "1"}`.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct HranaValue<'a>(pub(super) Value<'a>);

#[derive(serde::Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Tagged<'a> {
    Null,
    Integer {
        value: Integer,
    },
    Float {
        value: f64,
    },
    Text {
        #[serde(borrow)]
        value: Cow<'a, str>,
    },
    Blob {
        #[serde(borrow)]
        base64: Cow<'a, str>,
    },
}

impl<'de: 'a, 'a> Deserialize<'de> for HranaValue<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self(match Tagged::deserialize(deserializer)? {
            Tagged::Null => Value::Null,
            Tagged::Integer { value } => Value::Integer(value.0),
            Tagged::Float { value } => Value::Float(value),
            Tagged::Text { value } => Value::Text(value),
            Tagged::Blob { base64 } => Value::Blob(decode_base64(&base64)?),
        }))
    }
}

/// A 64-bit integer as a string, as Hrana has it, or as a number.
struct Integer(i64);

impl<'de> Deserialize<'de> for Integer {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct IntegerVisitor;
        impl Visitor<'_> for IntegerVisitor {
            type Value = Integer;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a 64-bit integer as a string")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Integer, E> {
                text.parse().map(Integer).map_err(|_| E::invalid_value(Unexpected::Str(text), &self))
            }
            fn visit_i64<E: de::Error>(self, integer: i64) -> Result<Integer, E> {
                Ok(Integer(integer))
            }
            fn visit_u64<E: de::Error>(self, integer: u64) -> Result<Integer, E> {
                i64::try_from(integer)
                    .map(Integer)
                    .map_err(|_| E::invalid_value(Unexpected::Unsigned(integer), &self))
            }
        }
        deserializer.deserialize_any(IntegerVisitor)
    }
}

/// A value in plain JSON: null, a boolean (1 or 0), a number, a string, or `{"base64": "..."}`.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct PlainValue<'a>(pub(super) Value<'a>);

impl<'de: 'a, 'a> Deserialize<'de> for PlainValue<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct PlainVisitor;
        impl<'de> Visitor<'de> for PlainVisitor {
            type Value = PlainValue<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(
                    "null, a boolean, a number of at most 64 bits, a string, or a blob as {\"base64\": \"...\"}",
                )
            }
            fn visit_unit<E: de::Error>(self) -> Result<Self::Value, E> {
                Ok(PlainValue(Value::Null))
            }
            fn visit_bool<E: de::Error>(self, value: bool) -> Result<Self::Value, E> {
                Ok(PlainValue(Value::Integer(i64::from(value))))
            }
            fn visit_i64<E: de::Error>(self, value: i64) -> Result<Self::Value, E> {
                Ok(PlainValue(Value::Integer(value)))
            }
            fn visit_u64<E: de::Error>(self, value: u64) -> Result<Self::Value, E> {
                let integer =
                    i64::try_from(value).map_err(|_| E::invalid_value(Unexpected::Unsigned(value), &self))?;
                Ok(PlainValue(Value::Integer(integer)))
            }
            fn visit_f64<E: de::Error>(self, value: f64) -> Result<Self::Value, E> {
                Ok(PlainValue(Value::Float(value)))
            }
            fn visit_borrowed_str<E: de::Error>(self, value: &'de str) -> Result<Self::Value, E> {
                Ok(PlainValue(Value::Text(Cow::Borrowed(value))))
            }
            fn visit_str<E: de::Error>(self, value: &str) -> Result<Self::Value, E> {
                Ok(PlainValue(Value::Text(Cow::Owned(value.to_owned()))))
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let Some((key, text)) = map.next_entry::<Cow<'de, str>, Cow<'de, str>>()? else {
                    return Err(de::Error::invalid_value(Unexpected::Map, &self));
                };
                if key != "base64" || map.next_key::<de::IgnoredAny>()?.is_some() {
                    return Err(de::Error::invalid_value(Unexpected::Map, &self));
                }
                Ok(PlainValue(Value::Blob(decode_base64(&text)?)))
            }
        }
        deserializer.deserialize_any(PlainVisitor)
    }
}

/// Writes a column in Hrana's form.
///
/// # Errors
/// When the reply is full.
pub(super) fn write_hrana(out: &mut JsonOut, column: Column<'_>) -> Result<(), SqlFailure> {
    out.check(column)?;
    match column {
        Column::Null => out.raw("{\"type\":\"null\"}"),
        Column::Integer(integer) => {
            out.display(format_args!("{{\"type\":\"integer\",\"value\":\"{integer}\"}}"));
        }
        Column::Float(float) => {
            out.raw("{\"type\":\"float\",\"value\":");
            out.float(float);
            out.raw("}");
        }
        Column::Text(text) => {
            out.raw("{\"type\":\"text\",\"value\":");
            out.text(text);
            out.raw("}");
        }
        Column::Blob(blob) => {
            out.raw("{\"type\":\"blob\",\"base64\":");
            out.base64(blob);
            out.raw("}");
        }
    }
    Ok(())
}

/// Writes a column as plain JSON.
///
/// # Errors
/// When the reply is full.
pub(super) fn write_plain(out: &mut JsonOut, column: Column<'_>) -> Result<(), SqlFailure> {
    out.check(column)?;
    match column {
        Column::Null => out.raw("null"),
        Column::Integer(integer) => out.integer(integer),
        Column::Float(float) => out.float(float),
        Column::Text(text) => out.text(text),
        Column::Blob(blob) => {
            out.raw("{\"base64\":");
            out.base64(blob);
            out.raw("}");
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hrana(json: &str) -> Result<Value<'_>, String> {
        serde_json::from_str::<HranaValue<'_>>(json).map(|value| value.0).map_err(|error| error.to_string())
    }

    fn plain(json: &str) -> Result<Value<'_>, String> {
        serde_json::from_str::<PlainValue<'_>>(json).map(|value| value.0).map_err(|error| error.to_string())
    }

    #[test]
    fn hrana_values_are_exact() {
        assert_eq!(hrana(r#"{"type":"null"}"#), Ok(Value::Null));
        for integer in [0, 9_007_199_254_740_993, i64::MAX, i64::MIN] {
            let json = format!(r#"{{"type":"integer","value":"{integer}"}}"#);
            assert_eq!(hrana(&json), Ok(Value::Integer(integer)));
        }
        assert_eq!(hrana(r#"{"value":5,"type":"integer"}"#), Ok(Value::Integer(5)));
        assert_eq!(hrana(r#"{"type":"float","value":1}"#), Ok(Value::Float(1.0)));
        assert_eq!(hrana(r#"{"type":"blob","base64":"AQI"}"#), Ok(Value::Blob(vec![1, 2])));
        assert_eq!(hrana(r#"{"type":"blob","base64":"AQI="}"#), Ok(Value::Blob(vec![1, 2])));
        assert_eq!(hrana(r#"{"type":"text","value":"\u00e9\n"}"#), Ok(Value::Text("é\n".into())));
        for bad in [
            r#"{"type":"integer","value":"9223372036854775808"}"#,
            r#"{"type":"integer","value":1.5}"#,
            r#"{"type":"blob","base64":"?"}"#,
            r#"{"type":"date","value":"1"}"#,
            r#"{"value":"1"}"#,
        ] {
            assert!(hrana(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn plain_values_are_exact_or_refused() {
        assert_eq!(plain("9223372036854775807"), Ok(Value::Integer(i64::MAX)));
        assert!(plain("9223372036854775808").unwrap_err().contains("64 bits"));
        assert_eq!(plain("true"), Ok(Value::Integer(1)));
        assert_eq!(plain("1.5"), Ok(Value::Float(1.5)));
        assert_eq!(plain(r#""a\tb""#), Ok(Value::Text("a\tb".into())));
        assert_eq!(plain(r#"{"base64":"AQI="}"#), Ok(Value::Blob(vec![1, 2])));
        for bad in ["[]", "{}", r#"{"hex":"00"}"#, r#"{"base64":"AA","x":1}"#] {
            assert!(plain(bad).is_err(), "{bad}");
        }
    }
}
