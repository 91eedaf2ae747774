//! Keys and values, by promises and at once.

use super::{Cell, run};

#[test]
fn values_of_every_kind_come_back() {
    assert_eq!(
        run("await s.put('a', { n: 1n, d: new Date(5), m: new Map([[1, new Set([2])]]), b: new Uint8Array([7]), u: undefined });
            const a = await s.get('a');
            await s.put('null', null);
            return [String(a.n), a.d.getTime(), a.m.get(1).has(2), a.b[0], 'u' in a, await s.get('null'), await s.get('missing')]"),
        r#"["1",5,true,7,true,null,"undefined"]"#
    );
}

#[test]
fn keys_are_what_their_text_is() {
    assert_eq!(
        run("await s.put(5, 'five'); await s.put('', 'empty'); await s.put('a\\0b', 'nul'); await s.put(null, 'null');
            return [await s.get('5'), await s.get(''), await s.get('a\\0b'), await s.get('null'), await s.get('a')]"),
        r#"["five","empty","nul","null","undefined"]"#
    );
}

#[test]
fn several_keys_are_put_got_and_deleted_at_once() {
    assert_eq!(
        run("await s.put({ b: 1, a: 2, skipped: undefined });
            const got = await s.get(['b', 'a', 'b', 'missing']);
            const gone = [await s.delete(['b', 'b', 'missing']), await s.delete('a'), await s.delete('a')];
            return [got, gone, await s.list()]"),
        r#"[[["a",2],["b",1]],[1,true,false],[]]"#
    );
}

#[test]
fn undefined_and_functions_are_refused_as_on_cloudflare() {
    assert_eq!(
        run("return [await error(() => s.put('a')), await error(() => s.put('a', undefined)), await error(() => s.put()),
            await error(() => s.get()), await error(() => s.delete()), await error(() => s.get('a', 5)), await error(() => s.list('x')),
            (await error(() => s.put('f', () => 1))).startsWith('DataCloneError: '), (await s.list()).size]"),
        r#"["TypeError: put() called with undefined value.","TypeError: put() called with undefined value.","TypeError: Failed to execute 'put' on 'DurableObjectStorage': parameter 1 is not of type 'string or object'.","TypeError: Failed to execute 'get' on 'DurableObjectStorage': parameter 1 is not of type 'string or Array'.","TypeError: Failed to execute 'delete' on 'DurableObjectStorage': parameter 1 is not of type 'string or Array'.","TypeError: Failed to execute 'get' on 'DurableObjectStorage': parameter 2 is not of type 'GetOptions'.","TypeError: Failed to execute 'list' on 'DurableObjectStorage': parameter 1 is not of type 'ListOptions'.",true,0]"#
    );
}

#[test]
fn errors_are_rejections_and_never_thrown() {
    assert_eq!(run("const p = s.put('a'); p.catch(() => {}); return 'not thrown'"), r#""not thrown""#);
}

#[test]
fn limits_are_told_with_their_numbers() {
    assert_eq!(
        run("const many = n => Array.from({ length: n }, (_, i) => 'k' + i);
            await s.put('k'.repeat(2048), 1); await s.put('é'.repeat(1024), 1); await s.get(many(128));
            await s.put('v', new Uint8Array(2 * 1024 * 1024 - 100));
            return [await error(() => s.put('k'.repeat(2049), 1)), await error(() => s.get('é'.repeat(1025))),
              await error(() => s.get(many(129))), await error(() => s.delete(many(129))),
              await error(() => s.put(Object.fromEntries(many(129).map(k => [k, 1])))),
              (await error(() => s.put('v', new Uint8Array(2 * 1024 * 1024)))).replace(/size [0-9]+/, 'size N')]"),
        r#"["RangeError: Keys cannot be larger than 2048 bytes. A key of size 2049 was provided.","RangeError: Keys cannot be larger than 2048 bytes. A key of size 2050 was provided.","RangeError: Maximum number of keys is 128.","RangeError: Maximum number of keys is 128.","RangeError: Maximum number of pairs is 128.","RangeError: Values cannot be larger than 2097152 bytes. A value of size N was provided."]"#
    );
}

#[test]
fn a_batch_of_puts_is_all_or_nothing() {
    assert_eq!(
        run("await s.put('a', 'old'); await error(() => s.put({ a: 'new', b: () => 1 }));
            return [await s.get('a'), await s.get('b')]"),
        r#"["old","undefined"]"#
    );
}

#[test]
fn a_list_is_ordered_by_bytes_of_utf8() {
    assert_eq!(
        run("await s.put({ '\\u{10000}': 1, '\\uffff': 2, a: 3, B: 4, 'a\\0b': 5, 'é': 6 });
            return [...(await s.list()).values()]"),
        "[4,3,5,6,2,1]"
    );
}

#[test]
fn a_list_honours_every_option() {
    let cell = Cell::new();
    cell.run("await s.put({ a: 1, ab: 2, abc: 3, b: 4, ba: 5, c: 6 })");
    for (options, keys) in [
        ("undefined", "a,ab,abc,b,ba,c"),
        ("{}", "a,ab,abc,b,ba,c"),
        ("{ start: 'ab' }", "ab,abc,b,ba,c"),
        ("{ startAfter: 'ab' }", "abc,b,ba,c"),
        ("{ end: 'b' }", "a,ab,abc"),
        ("{ start: 'ab', end: 'ba' }", "ab,abc,b"),
        ("{ prefix: 'a' }", "a,ab,abc"),
        ("{ prefix: 'a', startAfter: 'a', end: 'abc' }", "ab"),
        ("{ prefix: 'b', end: 'zzz' }", "b,ba"),
        ("{ prefix: 'b', start: 'a' }", "b,ba"),
        ("{ prefix: 'a', start: 'b' }", ""),
        ("{ reverse: true }", "c,ba,b,abc,ab,a"),
        ("{ limit: 2 }", "a,ab"),
        ("{ limit: 2, reverse: true }", "c,ba"),
        ("{ limit: 1.9 }", "a"),
        ("{ prefix: 'a', reverse: true, limit: 2 }", "abc,ab"),
        ("{ start: 'b', end: 'a' }", ""),
        ("{ end: '' }", ""),
        ("{ allowConcurrency: true, noCache: true, limit: 1 }", "a"),
    ] {
        assert_eq!(
            cell.run(&format!(
                "const list = [...(await s.list({options})).keys()].join();
                const iterated = [...s.kv.list({options})].map(([key]) => key).join();
                return list === iterated ? list : [list, iterated]"
            )),
            format!("{keys:?}"),
            "{options}"
        );
    }
    assert_eq!(
        cell.run(
            "return [await error(() => s.list({ limit: 0 })), await error(() => s.list({ limit: 'x' })), await error(() => s.list({ limit: 1e10 })), await error(() => s.list({ start: 'a', startAfter: 'a' }))]"
        ),
        r#"["TypeError: List limit must be positive.","TypeError: List limit must be positive.","TypeError: Value out of range. Must be between -2147483648 and 2147483647 (inclusive).","TypeError: list() cannot be called with both start and startAfter values."]"#
    );
}

#[test]
fn the_synchronous_part_works_at_once() {
    assert_eq!(
        run("const { kv } = s;
            kv.put('a', { x: 1 }); kv.put('u', undefined);
            return [kv.get('a'), kv.get('missing'), kv.get('u'), kv.delete('u'), kv.delete('u'), await s.get('a'),
              await error(() => kv.put('b')), await error(() => kv.get()), String(kv), String(kv.list())]"),
        r#"[{"x":1},"undefined","undefined",true,false,{"x":1},"TypeError: Failed to execute 'put' on 'SyncKvStorage': parameter 2 is not of type 'Value'.","TypeError: Failed to execute 'get' on 'SyncKvStorage': parameter 1 is not of type 'string'.","[object SyncKvStorage]","[object ListIterator]"]"#
    );
}

#[test]
fn an_iterator_pages_through_many_keys_and_sees_what_is_put_meanwhile() {
    assert_eq!(
        run("for (let i = 0; i < 200; i++) s.kv.put('k' + String(i).padStart(3, '0'), i);
            const all = [...s.kv.list()], back = [...s.kv.list({ reverse: true, limit: 130 })];
            const iterator = s.kv.list({ start: 'k190' });
            iterator.next(); s.kv.put('z', 'new');
            const seen = [...iterator].map(([key]) => key);
            return [all.length, all.every(([key, value], i) => value === i), back.length, back[0][1], back[129][1], seen.length, s.kv.list({ start: 'z' }).next().value[1]]"),
        r#"[200,true,130,199,70,10,"new"]"#
    );
}

#[test]
fn delete_all_removes_everything_of_the_handler_and_frees_space() {
    let cell = Cell::new();
    let before = cell.run(
        "await s.put('a', 1);
        sql.exec(`CREATE TABLE p(id INTEGER PRIMARY KEY AUTOINCREMENT, x); CREATE TABLE c(p REFERENCES p(id)); CREATE INDEX i ON p(x);
          CREATE VIEW v AS SELECT * FROM p; CREATE TRIGGER t AFTER INSERT ON p BEGIN SELECT 1; END; CREATE VIRTUAL TABLE f USING fts5(a);
          INSERT INTO p(x) VALUES (1); INSERT INTO c VALUES (1)`);
        for (let i = 0; i < 100; i++) sql.exec('INSERT INTO p(x) VALUES (zeroblob(4000))');
        sql.exec('ANALYZE');
        return sql.databaseSize",
    );
    assert!(before.parse::<u64>().unwrap() > 400_000, "{before}");
    assert_eq!(
        cell.run("await s.deleteAll(); return [(await s.list()).size, sql.exec(\"SELECT name FROM sqlite_schema WHERE name NOT LIKE 'sqlite%'\").toArray()]"),
        r#"[0,[{"name":"_hf_kv"}]]"#
    );
    let after: u64 = cell.run("return sql.databaseSize").parse().unwrap();
    assert!(after < 20_000, "{after}");
    // The pages themselves are gone, not only free.
    {
        let mut engine = cell.engine.borrow_mut();
        engine.capture(holdfast_types::Millis::new(1)).unwrap().unwrap();
        assert!(engine.size_bytes() < 20_000, "{}", engine.size_bytes());
    }
    cell.run("sql.exec('CREATE TABLE p(a)'); await s.put('a', 2)");
}
