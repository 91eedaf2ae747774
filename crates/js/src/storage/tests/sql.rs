//! `ctx.storage.sql`.

use std::time::Duration;

use super::{Cell, run};
use crate::isolate::Limits;
use crate::testing::limits;

#[test]
fn a_cursor_is_read_in_every_way() {
    assert_eq!(
        run("const q = () => sql.exec('SELECT 1 AS a UNION SELECT 2'), out = [];
            let c = q(); out.push(c.next(), c.toArray(), c.next(), c.toArray());
            c = q(); for (const row of c) { out.push(row); break; } out.push([...c]);
            c = q(); const raw = c.raw(); out.push(raw.next(), c.next(), raw.toArray());
            out.push(sql.exec('SELECT 1 AS a, 2 AS a, 3 AS b').columnNames, sql.exec('SELECT 1 AS a, 2 AS a').one(), [...sql.exec('SELECT 1 AS a, 2 AS a').raw()]);
            return out"),
        r#"[{"done":false,"value":{"a":1}},[{"a":2}],{"done":true,"value":"undefined"},[],{"a":1},[{"a":2}],{"done":false,"value":[1]},{"done":false,"value":{"a":2}},[],["a","a","b"],{"a":2},[[1,2]]]"#
    );
}

#[test]
fn one_wants_exactly_one_row() {
    assert_eq!(
        run(
            "return [sql.exec('SELECT 5 AS n').one(), await error(() => sql.exec('SELECT 1 UNION SELECT 2').one()), await error(() => sql.exec('SELECT 1 WHERE 0').one())]"
        ),
        r#"[{"n":5},"Error: Expected exactly one result from SQL query, but got multiple results.","Error: Expected exactly one result from SQL query, but got no results."]"#
    );
}

#[test]
fn values_are_bound_and_read_as_on_cloudflare() {
    assert_eq!(
        run("const type = v => sql.exec('SELECT typeof(?1) AS t, ?1 AS v', v).one();
            return [type(null), type(undefined), type(5), type(1.5), type('é'), type(true), type(NaN), type(new Uint8Array([1, 2]).buffer),
              type(new Uint16Array([1, 2]).subarray(1)), type(new Uint8Array(0)), type([1]), await error(() => type(5n)), await error(() => type(Symbol('x')))]"),
        r#"[{"t":"null","v":null},{"t":"null","v":null},{"t":"real","v":5},{"t":"real","v":1.5},{"t":"text","v":"é"},{"t":"text","v":"true"},{"t":"null","v":null},{"t":"blob","v":{"bytes":[1,2]}},{"t":"blob","v":{"bytes":[2,0]}},{"t":"blob","v":{"bytes":[]}},{"t":"text","v":"1"},"TypeError: Cannot convert a BigInt value to a number","TypeError: cannot convert symbol to string"]"#
    );
}

#[test]
fn integers_are_exact_up_to_2_to_the_53rd_and_the_nearest_number_beyond() {
    for (integer, seen) in [
        ("1774883342899", "1774883342899"),
        ("2147483647", "2147483647"),
        ("2147483648", "2147483648"),
        ("-2147483649", "-2147483649"),
        ("9007199254740992", "9007199254740992"),
        ("9007199254740993", "9007199254740992"),
        ("9223372036854775807", "9223372036854776000"),
        ("-9223372036854775808", "-9223372036854776000"),
    ] {
        assert_eq!(run(&format!("return sql.exec('SELECT {integer} AS v').one().v")), seen);
    }
    assert_eq!(
        run("sql.exec('CREATE TABLE t(i INTEGER)');
            for (const v of [1774883342899, 2147483648, 9007199254740992, -1]) sql.exec('INSERT INTO t VALUES (?)', v);
            return sql.exec('SELECT CAST(i AS TEXT) AS v FROM t').toArray().map(row => row.v)"),
        r#"["1774883342899","2147483648","9007199254740992","-1"]"#
    );
}

#[test]
fn several_statements_run_in_order_and_the_last_has_the_bindings() {
    assert_eq!(
        run("const last = sql.exec('CREATE TABLE t(a); INSERT INTO t VALUES (1); SELECT a + ? AS b FROM t;', 5).toArray();
            return [last, await error(() => sql.exec('SELECT ?; SELECT 2', 1)), await error(() => sql.exec('SELECT ?')), await error(() => sql.exec('SELECT ?', 1, 2)),
              await error(() => sql.exec('')), await error(() => sql.exec('-- x')), await error(() => sql.exec('SELECT 1;;')), await error(() => sql.exec())]"),
        r#"[[{"b":6}],"Error: When executing multiple SQL statements in a single call, only the last statement can have parameters.","Error: Wrong number of parameter bindings for SQL query.","Error: Wrong number of parameter bindings for SQL query.","Error: SQL code did not contain a statement.","Error: SQL code did not contain a statement.","Error: SQL code did not contain a statement.","TypeError: Failed to execute 'exec' on 'SqlStorage': parameter 1 is not of type 'String'."]"#
    );
}

#[test]
fn errors_have_the_text_and_code_of_sqlite() {
    assert_eq!(
        run("sql.exec('CREATE TABLE u(a UNIQUE NOT NULL); INSERT INTO u VALUES (1); CREATE TABLE i(a INTEGER PRIMARY KEY)');
            return [await error(() => sql.exec('selct 1')), await error(() => sql.exec('SELECT * FROM nope')), await error(() => sql.exec('INSERT INTO u VALUES (1)')),
              await error(() => sql.exec('INSERT INTO u VALUES (NULL)')), await error(() => sql.exec(\"INSERT INTO i VALUES ('x')\"))]"),
        r#"["Error: near \"selct\": syntax error at offset 0: SQLITE_ERROR","Error: no such table: nope: SQLITE_ERROR","Error: UNIQUE constraint failed: u.a: SQLITE_CONSTRAINT (extended: SQLITE_CONSTRAINT_UNIQUE)","Error: NOT NULL constraint failed: u.a: SQLITE_CONSTRAINT (extended: SQLITE_CONSTRAINT_NOTNULL)","Error: datatype mismatch: SQLITE_MISMATCH"]"#
    );
}

#[test]
fn transactions_by_sql_are_refused_with_cloudflares_text() {
    for statement in
        ["BEGIN", "begin immediate", "COMMIT", "END", "ROLLBACK", "SAVEPOINT x", "RELEASE x", "ROLLBACK TO x"]
    {
        let told = run(&format!("return await error(() => sql.exec('{statement}'))"));
        assert!(
            told.starts_with("\"Error: To execute a transaction, please use the state.storage.transaction() or state.storage.transactionSync() APIs")
                && told.ends_with("automatic atomic write coalescing.\""),
            "{statement}: {told}"
        );
    }
}

#[test]
fn what_could_reach_past_the_database_is_refused() {
    for statement in [
        "ATTACH ':memory:' AS x",
        "DETACH x",
        "PRAGMA journal_mode",
        "PRAGMA journal_mode=delete",
        "PRAGMA user_version",
        "PRAGMA page_size=512",
        "SELECT load_extension(1)",
        "CREATE TEMP TABLE x(a)",
        "CREATE TABLE _hf_x(a)",
        "SELECT * FROM _hf_kv",
    ] {
        let told = run(&format!("await s.put('a', 1); return await error(() => sql.exec(`{statement}`))"));
        assert!(told.ends_with(": SQLITE_AUTH\""), "{statement}: {told}");
    }
    let told = run("sql.exec('CREATE TABLE t(a)'); return await error(() => sql.exec('VACUUM'))");
    assert_eq!(told, r#""Error: cannot VACUUM from within a transaction: SQLITE_ERROR""#);
}

#[test]
fn the_pragmas_of_cloudflare_work() {
    assert_eq!(
        run("sql.exec('CREATE TABLE t(a INTEGER PRIMARY KEY, b)');
            const n = q => sql.exec('PRAGMA ' + q).toArray();
            return [n('foreign_keys'), n('table_info(t)').length, n('table_xinfo(t)').length, n('index_list(t)'), n('foreign_key_check'), n('quick_check'), n('optimize'),
              n('legacy_alter_table'), n('case_sensitive_like=on'), n('recursive_triggers=on'), n('recursive_triggers'), n('table_list').length > 0, n('data_version').length]"),
        r#"[[{"foreign_keys":1}],2,2,[],[],[{"quick_check":"ok"}],[],[{"legacy_alter_table":0}],[],[],[{"recursive_triggers":1}],true,1]"#
    );
}

#[test]
fn an_undrained_cursor_locks_nothing() {
    let cell = Cell::new();
    for _ in 0..2 {
        assert_eq!(
            cell.run("sql.exec('DROP TABLE IF EXISTS entries'); sql.exec('CREATE TABLE entries(key TEXT PRIMARY KEY, value TEXT)');
                sql.exec('INSERT INTO entries VALUES (?, ?), (?, ?)', 'a', '1', 'b', '2');
                const one = sql.exec('SELECT * FROM entries'), two = sql.exec('SELECT * FROM entries');
                two.next();
                sql.exec('DROP TABLE entries');
                return [one.toArray().length, two.toArray().length]"),
            "[2,1]"
        );
    }
}

#[test]
fn a_thousand_undrained_cursors_hold_no_read_mark() {
    let cell = Cell::new();
    cell.run("sql.exec('CREATE TABLE t(a)'); for (let i = 0; i < 200; i++) sql.exec('INSERT INTO t VALUES (?)', 'x'.repeat(50))");
    let mut world = cell.object("this.cursors ??= []; for (let i = 0; i < 1000; i++) this.cursors.push(sql.exec('SELECT * FROM t')); return this.cursors.length");
    let event = world.get("https://object/");
    assert_eq!(world.text(event), "1000");
    let mut engine = cell.engine.borrow_mut();
    engine.capture(holdfast_types::Millis::new(1)).unwrap().unwrap();
    assert!(engine.checkpoint().unwrap(), "all is captured and nothing reads");
    assert_eq!(engine.wal_bytes(), 0);
}

#[test]
fn cursors_that_are_kept_are_bounded_and_free_what_they_held() {
    assert_eq!(
        run("sql.exec('CREATE TABLE t(a)'); for (let i = 0; i < 8; i++) sql.exec('INSERT INTO t VALUES (zeroblob(1000000))');
            let kept = [];
            const told = await error(() => { for (let i = 0; i < 10; i++) kept.push(sql.exec('SELECT * FROM t')); });
            const count = kept.length;
            kept = [];
            return [told.endsWith('use LIMIT, or read fewer columns: RESULT_TOO_LARGE'), count, sql.exec('SELECT * FROM t').toArray().length]"),
        "[true,4,8]"
    );
}

#[test]
fn a_cursor_outlives_its_statement_a_wait_and_garbage() {
    assert_eq!(
        run("sql.exec('CREATE TABLE t(a)'); for (let i = 0; i < 300; i++) sql.exec('INSERT INTO t VALUES (?)', i);
            const cursor = (() => sql.exec('SELECT a FROM t ORDER BY a'))();
            cursor.next();
            await scheduler.wait(5);
            for (let i = 0; i < 1000; i++) ({ garbage: 'x'.repeat(1000) });
            sql.exec('DELETE FROM t');
            const rest = cursor.toArray();
            return [rest.length, rest[298].a, sql.exec('SELECT count(*) AS n FROM t').one().n]"),
        "[299,299,0]"
    );
}

#[test]
fn rows_read_and_written_are_counted() {
    assert_eq!(
        run("sql.exec('CREATE TABLE t(a INTEGER PRIMARY KEY, b)');
            const count = c => [c.rowsRead, c.rowsWritten];
            return [count(sql.exec('INSERT INTO t(b) VALUES (1), (2), (3)')), count(sql.exec('SELECT * FROM t')), count(sql.exec('INSERT INTO t(b) VALUES (4) RETURNING a')), count(sql.exec('DELETE FROM t; SELECT 1'))[1]]"),
        "[[0,3],[3,0],[1,1],4]"
    );
}

#[test]
fn limits_have_clear_errors() {
    assert_eq!(
        run("return [await error(() => sql.exec('SELECT ? LIKE ?', 'x', '%a'.repeat(25000))), await error(() => sql.exec('SELECT 1 /*' + 'x'.repeat(1 << 20) + '*/')),
              sql.exec('SELECT ' + Array(101).fill('?').join(), ...Array(101).fill(1)).columnNames.length,
              (await error(() => sql.exec('CREATE TABLE w(' + Array.from({ length: 2001 }, (_, i) => 'c' + i).join() + ')'))),
              (await error(() => sql.exec('SELECT zeroblob(100000000)'))), (await error(() => sql.exec('SELECT 1\\0')))]"),
        r#"["Error: LIKE or GLOB pattern too complex: SQLITE_ERROR","Error: the SQL text has 1048589 bytes; the limit is 1048576: SQLITE_TOOBIG",101,"Error: too many columns on w: SQLITE_ERROR","Error: string or blob too big: SQLITE_TOOBIG","Error: the SQL text holds a NUL character at byte 8: SQL_PARSE_ERROR"]"#
    );
}

#[test]
fn a_query_that_never_ends_is_interrupted_and_the_handler_hears_of_it() {
    let cell = Cell::new();
    let short = Limits { turn: Duration::from_secs(2), ..limits() };
    let mut world = cell.object_within(
        "await s.put('a', 1);
        const told = await error(() => sql.exec('WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c'));
        await s.put('b', 2);
        return told",
        short,
    );
    let event = world.get("https://object/");
    assert_eq!(world.broken, None);
    let told = world.text(event);
    assert!(
        told.starts_with("\"Error: interrupted: the statement took more than the ")
            && told.ends_with(": SQLITE_INTERRUPT\""),
        "{told}"
    );
    assert_eq!(cell.run("return [await s.get('a'), await s.get('b')]"), "[1,2]");
}
