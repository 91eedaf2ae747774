//! `Blob`, `File`, `FormData`: content in memory, forms to and from bytes.

use rquickjs::convert::List;
use rquickjs::function::Func;
use rquickjs::{ArrayBuffer, Ctx, Exception, Object, Result, TypedArray};

use super::multipart::{self, FormEntry};
use crate::buffers;
use crate::plain;
use crate::prelude::Part;

pub(crate) const PART: Part =
    Part { name: "blob", source: include_str!("blob.js"), natives, globals: &["Blob", "File", "FormData"] };

fn natives<'js>(ctx: &Ctx<'js>) -> Result<Object<'js>> {
    let native = plain::record(ctx)?;
    native.set("encodeMultipart", Func::from(encode_multipart))?;
    native.set("parseMultipart", Func::from(parse_multipart))?;
    native.set("formType", Func::from(|value: String| List(multipart::content_type(&value))))?;
    Ok(native)
}

/// `texts` has three strings for an entry: name, value or file name, content type. `contents` has the bytes of a file,
/// or null for a text.
fn encode_multipart<'js>(
    ctx: Ctx<'js>,
    texts: Vec<String>,
    contents: Vec<Option<TypedArray<'js, u8>>>,
) -> Result<List<(String, ArrayBuffer<'js>)>> {
    let contents: Vec<_> = contents.iter().map(|content| content.as_ref().map(buffers::read)).collect();
    let mut random = [0; 16];
    getrandom::fill(&mut random).map_err(|_| Exception::throw_internal(&ctx, "no random bytes"))?;
    let boundary = format!("----formdata-holdfast-{:032x}", u128::from_le_bytes(random));
    let entries = texts.chunks_exact(3).zip(&contents).map(|(texts, content)| match content {
        None => FormEntry::Text { name: &texts[0], value: &texts[1] },
        Some(content) => {
            FormEntry::File { name: &texts[0], filename: &texts[1], content_type: &texts[2], content }
        }
    });
    let body = multipart::encode(&boundary, entries);
    Ok(List((boundary, ArrayBuffer::new(ctx, body)?)))
}

/// Three strings for each part (name, file name or null, content type), and two offsets.
type ParsedForm = List<(Vec<Option<String>>, Vec<usize>)>;

fn parse_multipart<'js>(ctx: Ctx<'js>, body: TypedArray<'js, u8>, boundary: String) -> Result<ParsedForm> {
    let parts = buffers::look(&body, move |body| multipart::parse(body, &boundary))
        .map_err(|error| Exception::throw_type(&ctx, &error.to_string()))?;
    let mut texts = Vec::with_capacity(parts.len() * 3);
    let mut offsets = Vec::with_capacity(parts.len() * 2);
    for part in parts {
        texts.extend([Some(part.name), part.filename, Some(part.content_type)]);
        offsets.extend([part.start, part.end]);
    }
    Ok(List((texts, offsets)))
}
