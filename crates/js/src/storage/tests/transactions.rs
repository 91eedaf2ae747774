//! `transactionSync` and `transaction`.

use super::{Cell, run};

#[test]
fn a_throw_in_a_synchronous_transaction_undoes_it_alone() {
    assert_eq!(
        run("sql.exec('CREATE TABLE t(a)');
            sql.exec('INSERT INTO t VALUES (1)');
            const told = await error(() => s.transactionSync(() => { sql.exec('INSERT INTO t VALUES (2)'); s.kv.put('k', 1); throw new Error('boo'); }));
            const value = s.transactionSync(() => { sql.exec('INSERT INTO t VALUES (3)'); return 'kept'; });
            return [told, value, sql.exec('SELECT a FROM t').toArray(), s.kv.get('k'), await error(() => s.transactionSync(5))]"),
        r#"["Error: boo","kept",[{"a":1},{"a":3}],"undefined","TypeError: Failed to execute 'transactionSync' on 'DurableObjectStorage': parameter 1 is not of type 'function'."]"#
    );
}

#[test]
fn synchronous_transactions_nest() {
    assert_eq!(
        run("sql.exec('CREATE TABLE t(a)');
            const add = a => sql.exec('INSERT INTO t VALUES (?)', a);
            s.transactionSync(() => {
              add(1);
              s.transactionSync(() => add(2));
              try { s.transactionSync(() => { add(3); s.transactionSync(() => add(4)); throw 0; }); } catch {}
              add(5);
            });
            return sql.exec('SELECT a FROM t').toArray().map(row => row.a)"),
        "[1,2,5]"
    );
}

#[test]
fn a_transaction_commits_what_its_closure_wrote() {
    let cell = Cell::new();
    assert_eq!(
        cell.run("return await s.transaction(async txn => {
            await txn.put('q', 1); await scheduler.wait(5); sql.exec('CREATE TABLE t(a)');
            return [await txn.get('q'), await s.get('q'), (await txn.list()).size, await txn.delete('zz'), String(txn)];
          })"),
        r#"[1,1,1,false,"[object DurableObjectTransaction]"]"#
    );
    assert_eq!(cell.run("return [await s.get('q'), sql.exec('SELECT * FROM t').toArray()]"), "[1,[]]");
}

#[test]
fn a_transaction_that_throws_or_rolls_back_leaves_nothing() {
    assert_eq!(
        run("await s.put('q', 1);
            const told = await error(() => s.transaction(async txn => { await txn.put('q', 2); await scheduler.wait(5); throw new RangeError('x'); }));
            const after = await s.get('q');
            const within = await s.transaction(async txn => { await txn.put('q', 3); txn.rollback(); txn.rollback(); return await s.get('q'); });
            const late = await error(() => s.transaction(async txn => { txn.rollback(); await txn.put('z', 1); }));
            await s.transaction(async txn => { txn.rollback(); await s.put('outside', 1); });
            let kept; await s.transaction(async txn => { kept = txn; });
            return [told, after, within, late, await s.get('outside'), await error(() => kept.put('z', 1)), await s.get('z'), await error(() => s.transaction())]"),
        r#"["RangeError: x",1,1,"Error: Cannot put() on rolled back transaction",1,"Error: Cannot call put() on transaction that has already committed: did you move `txn` outside of the closure?","undefined","TypeError: Failed to execute 'transaction' on 'DurableObjectStorage': parameter 1 is not of type 'function'."]"#
    );
}

#[test]
fn transactions_nest_and_their_siblings_take_turns() {
    assert_eq!(
        run("const nested = await s.transaction(async txn => {
              await txn.put('q', 5);
              await s.transaction(async inner => { await inner.put('q', 6); inner.rollback(); });
              await s.transaction(async inner => { await inner.put('r', 7); });
              return [await txn.get('q'), await txn.get('r')];
            });
            const siblings = await Promise.all([
              s.transaction(async t => { await t.put('m', 1); await scheduler.wait(5); return await s.get('m'); }),
              s.transaction(async t => { await t.put('m', 2); return await s.get('m'); }),
            ]);
            const within = await s.transaction(async () => Promise.all([
              s.transaction(async t => { await t.put('m', 3); await scheduler.wait(5); return await s.get('m'); }),
              error(() => s.transaction(async t => { await t.put('m', 4); throw new Error('no'); })),
            ]));
            return [nested, siblings, within, await s.get('m')]"),
        r#"[[5,7],[1,2],[3,"Error: no"],3]"#
    );
}

#[test]
fn one_that_is_begun_within_another_and_not_waited_for_ends_first() {
    assert_eq!(
        run("const order = [];
            await s.transaction(async () => {
              void s.transaction(async t => { await scheduler.wait(10); await t.put('inner', 1); order.push('inner'); });
              await scheduler.wait(1);
              order.push('outer');
            });
            return [order, await s.get('inner')]"),
        r#"[["outer","inner"],1]"#
    );
}

#[test]
fn delete_all_is_refused_within_a_transaction() {
    assert_eq!(
        run("await s.put('a', 1);
            return [await error(() => s.transaction(async txn => txn.deleteAll())), await error(() => s.transaction(async () => s.deleteAll())),
              await s.transactionSync(() => error(() => s.deleteAll())), await s.get('a')]"),
        r#"["Error: Cannot call deleteAll() within a transaction","Error: Cannot call deleteAll() within a transaction","Error: Cannot call deleteAll() within a transaction",1]"#
    );
}

#[test]
fn a_transaction_with_a_violated_constraint_is_rejected_and_the_object_goes_on() {
    assert_eq!(
        run("sql.exec('CREATE TABLE p(id PRIMARY KEY); CREATE TABLE c(pid REFERENCES p(id) DEFERRABLE INITIALLY DEFERRED)');
            const told = await error(() => s.transaction(async () => { sql.exec(\"INSERT INTO c VALUES ('missing')\"); }));
            return [told, sql.exec('SELECT count(*) AS n FROM c').one().n]"),
        r#"["Error: FOREIGN KEY constraint failed: SQLITE_CONSTRAINT (extended: SQLITE_CONSTRAINT_FOREIGNKEY)",0]"#
    );
}
