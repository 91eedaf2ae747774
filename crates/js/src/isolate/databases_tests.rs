//! D1 databases, over the SQL API that answers them in a fleet.

use holdfast_sql::{Engine, EngineOptions, Outcome, SqlCall, SqlRuntime, SqlRuntimeOptions};
use holdfast_types::{CellName, Epoch, Millis, Txid};

use crate::application::Binding;
use crate::effect::{JsError, Op, OpAnswer};
use crate::testing::application;
use crate::testing::world::World;

/// What `body`, the body of an async function of `DB`, returns as JSON; an error as `Error: … <- cause`.
fn run(body: &str) -> String {
    let source = format!(
        "const told = error => `${{error}} <- ${{error.cause?.message}}`;
         const fails = promise => promise.then(() => 'no error', told);
         export default {{ async fetch(request, {{ DB }}) {{
            try {{
                return Response.json(await (async () => {{ {body} }})());
            }} catch (error) {{
                return new Response(told(error));
            }}
         }} }}"
    );
    let code = application(&source).bind("DB", Binding::Database { name: "shop".to_owned() });
    let mut world = World::worker(code);
    let folder = tempfile::tempdir().unwrap();
    let mut engine =
        Engine::open(&folder.path().join("db"), Txid::ZERO, &EngineOptions::new(folder.path())).unwrap();
    let mut runtime = SqlRuntime::new(SqlRuntimeOptions::default());
    let cell = CellName::new("db", "shop").unwrap();
    let event = world.get("http://x/");
    let mut answered = 0;
    while let Some((op, call)) = world.ops().get(answered).cloned() {
        answered += 1;
        let Op::QueryDatabase { database, request } = call else { panic!("{call:?}") };
        assert_eq!(database, "shop");
        let call = SqlCall {
            method: "POST",
            path: "/d1",
            body: &request,
            is_read_only: false,
            cell: &cell,
            now: Millis::ZERO,
            epoch: Epoch::new(3),
        };
        let Outcome::Reply(reply) = runtime.handle(&mut engine, &call, Millis::new(1)) else {
            panic!("blocked")
        };
        assert_eq!(reply.status, 200, "{reply:?}");
        world.complete(op, OpAnswer::Returned(reply.body));
    }
    world.text(event)
}

const TABLE: &str = "await DB.exec('CREATE TABLE t(id INTEGER PRIMARY KEY, name TEXT, data BLOB)');
    await DB.prepare('INSERT INTO t VALUES (1, ?, ?), (2, ?2, NULL)').bind('a', new Uint8Array([1, 255])).run();";

#[test]
fn rows_come_as_objects_as_arrays_and_one_at_a_time() {
    let body = format!(
        "{TABLE}
         const all = DB.prepare('SELECT id, name, data FROM t ORDER BY id');
         const one = DB.prepare('SELECT id, name FROM t WHERE id = ?');
         return [(await all.all()).results, await all.raw(), await one.bind(1).raw({{ columnNames: true }}),
                 await one.bind(1).first(), await one.bind(1).first('name'), await one.bind(9).first(),
                 await one.bind(9).first('name'), (await one.bind(1).run()).results]"
    );
    let rows = r#"[{"id":1,"name":"a","data":[1,255]},{"id":2,"name":[1,255],"data":null}]"#;
    let raw = r#"[[1,"a",[1,255]],[2,[1,255],null]]"#;
    assert_eq!(
        run(&body),
        format!(
            r#"[{rows},{raw},[["id","name"],[1,"a"]],{{"id":1,"name":"a"}},"a",null,null,[{{"id":1,"name":"a"}}]]"#
        )
    );
}

#[test]
fn a_result_tells_what_was_changed() {
    let body = format!(
        "{TABLE}
         const show = ({{ success, meta: {{ duration, size_after, ...meta }} }}) =>
             [success, typeof duration, size_after > 0, meta];
         return [show(await DB.prepare(\"UPDATE t SET name = 'b'\").run()), show(await DB.prepare('SELECT 1').all())]"
    );
    let meta = |changes: u32, changed: bool, read: u32| {
        format!(
            r#"[true,"number",true,{{"served_by":"holdfast","served_by_primary":true,"changes":{changes},"last_row_id":2,"changed_db":{changed},"rows_read":{read},"rows_written":{changes}}}]"#
        )
    };
    let told = run(&body);
    // How many rows an UPDATE reads is SQLite's business.
    assert!(told.starts_with(r#"[[true,"number",true,{"served_by":"holdfast","served_by_primary":true,"changes":2,"last_row_id":2,"changed_db":true,"#), "{told}");
    assert!(told.ends_with(&format!(",{}]", meta(0, false, 1))), "{told}");
}

#[test]
fn every_kind_of_value_is_bound_or_refused() {
    let body = "
        const types = values => DB.prepare('SELECT ' + values.map(() => 'typeof(?)').join()).bind(...values).raw();
        const bind = value => { try { DB.prepare('SELECT ?').bind(value); return 'bound' } catch (error) { return told(error) } };
        return [await types([1, 1.5, 'x', null, true, new ArrayBuffer(2), [1, 2], new Uint16Array(1), 2 ** 60, -0]),
            await DB.prepare('SELECT ?, ?, ?').bind(true, new Uint16Array([258]), 2 ** 60).raw(),
            bind(undefined), bind(1n), bind({}), bind([300]), bind(Symbol('s'))]";
    assert_eq!(
        run(body),
        concat!(
            r#"[[["integer","real","text","null","integer","blob","blob","blob","integer","integer"]],[[1,[2,1],1152921504606847000]],"#,
            r#""Error: D1_TYPE_ERROR: Type 'undefined' not supported for value 'undefined' <- Type 'undefined' not supported for value 'undefined'","#,
            r#""Error: D1_TYPE_ERROR: Type 'bigint' not supported for value '1' <- Type 'bigint' not supported for value '1'","#,
            r#""Error: D1_TYPE_ERROR: Type 'object' not supported for value '[object Object]' <- Type 'object' not supported for value '[object Object]'","#,
            r#""Error: D1_TYPE_ERROR: Type 'object' not supported for value '300' <- Type 'object' not supported for value '300'","#,
            r#""Error: D1_TYPE_ERROR: Type 'symbol' not supported for value 'Symbol(s)' <- Type 'symbol' not supported for value 'Symbol(s)'"]"#,
        )
    );
}

#[test]
fn a_batch_is_all_or_nothing() {
    let body = format!(
        "{TABLE}
         const add = DB.prepare('INSERT INTO t(id) VALUES (?)');
         const count = async () => await DB.prepare('SELECT count(*) AS n FROM t').first('n');
         const good = await DB.batch([add.bind(3), add.bind(4), DB.prepare('SELECT max(id) AS m FROM t')]);
         return [good.length, good[2].results, await count(), await DB.batch([]),
             await fails(DB.batch([add.bind(5), add.bind(1), add.bind(6)])), await count(),
             await fails(DB.batch([add.bind(5), {{}}])),
             await fails(DB.batch([add.bind(5), DB.prepare('INSERT OR ROLLBACK INTO t(id) VALUES (1)')])), await count()]"
    );
    assert_eq!(
        run(&body),
        concat!(
            r#"[3,[{"m":4}],4,[],"#,
            r#""Error: D1_ERROR: UNIQUE constraint failed: t.id: SQLITE_CONSTRAINT (extended: SQLITE_CONSTRAINT_PRIMARYKEY) <- "#,
            r#"UNIQUE constraint failed: t.id: SQLITE_CONSTRAINT (extended: SQLITE_CONSTRAINT_PRIMARYKEY)",4,"#,
            r#""TypeError: Failed to execute 'batch' on 'D1Database': parameter 1 is not an array of D1PreparedStatement. <- undefined","#,
            r#""Error: D1_ERROR: UNIQUE constraint failed: t.id; the transaction was rolled back: SQLITE_CONSTRAINT (extended: SQLITE_CONSTRAINT_PRIMARYKEY) <- "#,
            r#"UNIQUE constraint failed: t.id; the transaction was rolled back: SQLITE_CONSTRAINT (extended: SQLITE_CONSTRAINT_PRIMARYKEY)",4]"#,
        )
    );
}

#[test]
fn errors_are_of_d1_and_have_a_cause() {
    let body = format!(
        "{TABLE}
         return [await fails(DB.prepare('SELECT * FROM absent').all()), await fails(DB.prepare('SELECT 1').first('x')),
             await fails(DB.exec('SELECT 1;\\n\\nSELECT x')), await fails(DB.exec('  ')),
             await fails(DB.prepare('BEGIN').run()), await fails(DB.prepare('SELECT ?').all()),
             await fails(DB.prepare('').all()), await fails(DB.dump())]"
    );
    let told: Vec<String> = serde_json::from_str(&run(&body)).unwrap();
    assert_eq!(
        told[..5],
        [
            "Error: D1_ERROR: no such table: absent: SQLITE_ERROR <- no such table: absent: SQLITE_ERROR",
            "Error: D1_COLUMN_NOTFOUND: Column not found (x) <- Column not found",
            "Error: D1_EXEC_ERROR: Error in line 2: SELECT x: no such column: x at offset 7: SQLITE_ERROR <- Error in line 2: SELECT x: no such column: x at offset 7: SQLITE_ERROR",
            "Error: D1_EXEC_ERROR: the query holds no statement <- the query holds no statement",
            "Error: D1_ERROR: To execute a transaction, please use the state.storage.transaction() or state.storage.transactionSync() APIs instead of the SQL BEGIN TRANSACTION or SAVEPOINT statements. The JavaScript API is safer because it will automatically roll back on exceptions, and because it interacts correctly with Durable Objects' automatic atomic write coalescing. <- To execute a transaction, please use the state.storage.transaction() or state.storage.transactionSync() APIs instead of the SQL BEGIN TRANSACTION or SAVEPOINT statements. The JavaScript API is safer because it will automatically roll back on exceptions, and because it interacts correctly with Durable Objects' automatic atomic write coalescing.",
        ]
    );
    assert!(
        told[5].starts_with("Error: D1_ERROR: Wrong number of parameter bindings for SQL query."),
        "{}",
        told[5]
    );
    assert!(told[6].starts_with("Error: D1_ERROR: SQL code did not contain a statement."), "{}", told[6]);
    assert_eq!(told[7], "Error: D1Database.dump is not supported yet. <- undefined");
}

#[test]
fn a_session_knows_how_far_it_has_read() {
    let body = "
        const session = DB.withSession('first-primary');
        const before = session.getBookmark();
        await session.prepare('CREATE TABLE t(a)').run();
        const given = DB.withSession('0000000000000009-0000000000000000');
        await given.prepare('SELECT 1').run();
        return [before, session.getBookmark(), given.getBookmark(), DB.withSession().getBookmark(),
            (await session.batch([session.prepare('SELECT 1 AS x')]))[0].results]";
    assert_eq!(
        run(body),
        r#"[null,"0000000000000003-0000000000000001","0000000000000009-0000000000000000",null,[{"x":1}]]"#
    );
}

#[test]
fn a_database_that_does_not_answer_is_an_error_of_d1_with_its_flags() {
    let source = "export default { async fetch(request, { DB }) {
        const error = await DB.prepare('SELECT 1').all().catch(error => error);
        return Response.json([`${error}`, error.retryable, error.overloaded]);
    } }";
    let code = application(source).bind("DB", Binding::Database { name: "shop".to_owned() });
    let mut world = World::worker(code);
    let event = world.get("http://x/");
    let (op, _) = world.ops().pop().unwrap();
    world.complete(op, OpAnswer::Failed(JsError { retryable: true, ..JsError::new("no node") }));
    assert_eq!(world.text(event), r#"["Error: D1_ERROR: no node",true,null]"#);
}
