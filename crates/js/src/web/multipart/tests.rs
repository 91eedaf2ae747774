//! Forms that browsers send, forms that nobody should.

use proptest::prelude::*;

use super::{FormEntry, FormPart, MultipartError, PARTS_MAX, content_type, encode, parse};

fn texts(body: &str) -> Result<Vec<(String, String)>, MultipartError> {
    let parts = parse(body.as_bytes(), "B")?;
    Ok(parts.into_iter().map(|part| (part.name, body[part.start..part.end].to_owned())).collect())
}

#[test]
fn a_form_of_a_browser_is_read() {
    let body = "--B\r\nContent-Disposition: form-data; name=\"a%22\"\r\n\r\none\r\n--B\r\ncontent-disposition: form-data; name=f; filename=\"x \\\"y.txt\"\r\nContent-Type: text/html\r\n\r\n<p>\r\n\r\n--B--\r\n";
    let parts = parse(body.as_bytes(), "B").unwrap();
    assert_eq!(parts[0].name, "a\"");
    assert_eq!(parts[0].filename, None);
    assert_eq!(&body[parts[0].start..parts[0].end], "one");
    assert_eq!(parts[1].filename.as_deref(), Some("x \"y.txt"));
    assert_eq!(parts[1].content_type, "text/html");
    assert_eq!(&body[parts[1].start..parts[1].end], "<p>\r\n");
}

#[test]
fn empty_contents_empty_forms_and_preambles_are_forms() {
    assert_eq!(texts("--B--"), Ok(vec![]));
    assert_eq!(texts("hello\r\n--B--\r\n"), Ok(vec![]));
    let empty = "--B\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n\r\n--B--";
    assert_eq!(texts(empty), Ok(vec![("a".to_owned(), String::new())]));
}

#[test]
fn what_is_no_form_says_why() {
    assert_eq!(texts(""), Err(MultipartError::NoBoundary));
    assert_eq!(texts("--C--"), Err(MultipartError::NoBoundary));
    assert_eq!(texts("--B"), Err(MultipartError::Unterminated));
    assert_eq!(texts("--B\r\n\r\nx\r\n--B--"), Err(MultipartError::NoName));
    assert_eq!(
        texts("--B\r\nContent-Disposition: attachment; name=a\r\n\r\nx\r\n--B--"),
        Err(MultipartError::NoName)
    );
    assert_eq!(texts("--B\r\nnonsense\r\n\r\nx\r\n--B--"), Err(MultipartError::BadHeaders));
    assert_eq!(
        texts("--B\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\nx"),
        Err(MultipartError::Unterminated)
    );
    let long = format!("--B\r\nX: {}\r\n\r\nx\r\n--B--", "x".repeat(20_000));
    assert_eq!(texts(&long), Err(MultipartError::BadHeaders));
    let many = "--B\r\nContent-Disposition: form-data; name=a\r\n\r\n\r\n".repeat(PARTS_MAX + 1);
    assert_eq!(texts(&format!("{many}--B--")), Err(MultipartError::TooManyParts));
}

#[test]
fn content_types_give_essence_and_boundary() {
    assert_eq!(
        content_type("Multipart/Form-Data; boundary=\"a b\""),
        ("multipart/form-data".into(), Some("a b".into()))
    );
    assert_eq!(
        content_type("multipart/form-data;charset=x; BOUNDARY=ab"),
        ("multipart/form-data".into(), Some("ab".into()))
    );
    assert_eq!(content_type("multipart/form-data; boundary="), ("multipart/form-data".into(), None));
    assert_eq!(content_type(""), (String::new(), None));
}

proptest! {
    #[test]
    fn what_is_written_is_read(entries in proptest::collection::vec((".{0,12}", proptest::collection::vec(any::<u8>(), 0..64)), 0..6)) {
        let clean: Vec<_> = entries.iter().map(|(name, content)| (name.replace(['\r', '\n', '%', '\\'], ""), content.clone())).collect();
        let body = encode("BOUNDARY", clean.iter().map(|(name, content)| FormEntry::File { name, filename: name, content_type: "x/y", content }));
        let parts = parse(&body, "BOUNDARY").unwrap();
        prop_assert_eq!(parts.len(), clean.len());
        for (FormPart { name, filename, content_type, start, end }, (wanted, content)) in parts.iter().zip(&clean) {
            prop_assert_eq!(name, wanted);
            prop_assert_eq!(filename.as_ref(), Some(wanted));
            prop_assert_eq!(content_type, "x/y");
            prop_assert_eq!(&body[*start..*end], &content[..]);
        }
    }

    #[test]
    fn hostile_bytes_never_panic(body in "(--B|\r\n|Content-Disposition: form-data; name=|\"|a|;|=|\\\\|--|:| |é){0,40}") {
        let _ = parse(body.as_bytes(), "B");
    }
}
