//! Frames and maps written by hand; what the packager makes is tested where both are linked, in `tools`.

use bytes::Bytes;

use super::SourceMaps;

/// Line 2 of the code: column 0 is `a.ts:10:5`, column 4 comes from nowhere, column 8 is `a.ts:12:1`.
const MAP: &str = r#"{"version":3,"sources":["src/a.ts"],"names":[],"mappings":";AASI,I,IAEJ"}"#;
const CODE: &str = "head\nfoo bar baz\n";

fn maps(map: &str) -> SourceMaps {
    let names = ["src/a.ts", "odd (b:1:2) (c)/d.ts"];
    SourceMaps::new(names.map(|name| (name.to_owned(), Bytes::copy_from_slice(map.as_bytes()))))
}

fn mapped_with(map: &str, code: &'static str, text: &str) -> String {
    maps(map).map(text.to_owned(), |_| Some(code.as_bytes()))
}

fn mapped(text: &str) -> String {
    mapped_with(MAP, CODE, text)
}

#[test]
fn frames_of_modules_with_a_map_are_told_as_places_of_files() {
    let stack =
        "Error: no\n    at go (src/a.ts:2:1)\n    at <anonymous> (src/a.ts:2:10)\n    at src/a.ts:2:3";
    let expected =
        "Error: no\n    at go (src/a.ts:10:5)\n    at <anonymous> (src/a.ts:12:1)\n    at src/a.ts:10:5";
    assert_eq!(mapped(stack), expected);
    assert_eq!(mapped("    at a (src/a.ts:2:1) {\n  code: 1\n}"), "    at a (src/a.ts:10:5) {\n  code: 1\n}");
    assert_eq!(mapped("  in a group\n      at a (src/a.ts:2:1)"), "  in a group\n      at a (src/a.ts:10:5)");
}

#[test]
fn what_has_no_place_in_a_file_stays() {
    for text in [
        "    at go (src/other.ts:2:1)",
        "    at go (src/a.ts:1:1)",
        "    at go (src/a.ts:2:6)",
        "    at go (src/a.ts:3:1)",
        "    at go (src/a.ts:99999999999:1)",
        "    at go (src/a.ts:2:1x)",
        "    at go (src/a.ts:2)",
        "    at go (native)",
        "    at src/a.ts",
        "    look at src/a.ts:2:1",
        "src/a.ts:2:1",
        "    at ",
    ] {
        assert_eq!(mapped(text), text);
    }
}

#[test]
fn a_name_may_have_parentheses_and_what_looks_like_a_place() {
    // The first that looks like a place is taken for one, so that a line is read once: this frame stays as it was.
    let odd = "    at go (odd (b:1:2) (c)/d.ts:2:1)";
    assert_eq!(mapped(odd), odd);
    let maps = SourceMaps::new([("odd (b)/d:e.ts".to_owned(), Bytes::from_static(MAP.as_bytes()))]);
    let text = maps.map("    at f (g) (odd (b)/d:e.ts:2:1)".to_owned(), |_| Some(CODE.as_bytes()));
    assert_eq!(text, "    at f (g) (src/a.ts:10:5)");
}

#[test]
fn columns_of_the_engine_are_bytes_and_those_of_maps_are_utf_16() {
    // `"ä😀", bar`: 3 units and 6 bytes stand for what 5 characters of ASCII would be.
    let map = r#"{"version":3,"sources":["src/a.ts"],"mappings":";AASI,OAEJ"}"#;
    let code = "\n\"\u{e4}\u{1f600}\", bar\n";
    assert_eq!(mapped_with(map, code, "    at src/a.ts:2:11"), "    at src/a.ts:12:1");
    assert_eq!(mapped_with(map, code, "    at src/a.ts:2:10"), "    at src/a.ts:10:5");
    assert_eq!(mapped_with(map, code, "    at src/a.ts:2:4"), "    at src/a.ts:10:5");
}

#[test]
fn a_map_that_is_none_changes_nothing_and_one_that_breaks_off_serves_what_it_has() {
    let text = "    at go (src/a.ts:2:1)";
    for map in
        ["", "{}", r#"{"version":4,"sources":["x"],"mappings":";AAAA"}"#, r#"{"version":3,"mappings":1}"#]
    {
        assert_eq!(mapped_with(map, CODE, text), text);
    }
    for rest in ["!", "A!", "gggggggggggA", "AAAAAAAA", "g", "\u{e4}"] {
        let map = format!(r#"{{"version":3,"sources":["x"],"mappings":";AASI,I,IAEJ,{rest}"}}"#);
        assert_eq!(mapped_with(&map, CODE, text), "    at go (x:10:5)", "{rest}");
    }
    // Sources that are not there, and places before the first.
    for mappings in [";AC", ";ACAA", ";ADAA", ";AAAA", "", ";;;;"] {
        let map = format!(r#"{{"version":3,"sources":[null],"mappings":"{mappings}"}}"#);
        assert_eq!(mapped_with(&map, CODE, text), text, "{mappings}");
    }
}

#[test]
fn a_look_up_in_a_long_map_begins_at_a_mark() {
    // 1,000 lines of 3 segments: column 4k comes from column 4k of the line before.
    let line = ";AACA,IAAI,IAAI";
    let next = ";AACR,IAAI,IAAI";
    let map = format!(r#"{{"version":3,"sources":["x"],"mappings":";{line}{}"}}"#, next.repeat(999));
    for row in [3, 88, 89, 500, 1001, 1002] {
        for (column, original) in [(1, 1), (4, 1), (5, 5), (8, 5), (9, 9), (20, 9)] {
            let text = mapped_with(&map, CODE, &format!("    at src/a.ts:{row}:{column}"));
            assert_eq!(text, format!("    at x:{}:{original}", row - 1));
        }
    }
    assert_eq!(mapped_with(&map, CODE, "    at src/a.ts:1003:1"), "    at src/a.ts:1003:1");
}

#[test]
fn the_largest_maps_are_left_out_where_all_together_are_too_large() {
    let large = Bytes::from(vec![b' '; super::BYTES_MAX - MAP.len() + 1]);
    let maps =
        SourceMaps::new([("l".to_owned(), large), ("s".to_owned(), Bytes::from_static(MAP.as_bytes()))]);
    let text = maps.map("    at l:2:1\n    at s:2:1".to_owned(), |_| Some(CODE.as_bytes()));
    assert_eq!(text, "    at l:2:1\n    at src/a.ts:10:5");
}
