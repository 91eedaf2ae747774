//! `setAlarm`, `getAlarm`, `deleteAlarm`, and what a run of the handler leaves. The texts are workerd's.

use holdfast_core::alarm::AlarmState;
use holdfast_types::{AlarmId, AlarmSeq, AlarmTime, Epoch, Millis};

use super::{Cell, run};
use crate::effect::{Effect, EventCall, EventId};
use crate::testing::world::World;
use crate::testing::{application, limits};

/// An object with an alarm handler; `fetch` runs `body`, and `alarm` runs `handler`, with `s` the storage.
fn object(cell: &Cell, body: &str, handler: &str) -> World {
    let source = format!(
        "import {{ DurableObject }} from 'cloudflare:workers';
        const error = async f => {{ try {{ return await f(); }} catch (e) {{ return `${{e.name}}: ${{e.message}}`; }} }};
        export class Test extends DurableObject {{
          async fetch(request) {{
            const s = this.ctx.storage;
            const value = await (async () => {{ {body} }})();
            return new Response(JSON.stringify(value) ?? 'undefined');
          }}
          async alarm(info) {{
            const s = this.ctx.storage;
            {handler}
          }}
        }}"
    );
    World::object_over(application(&source), "Test", &cell.engine, limits())
}

fn fetched(cell: &Cell, body: &str) -> String {
    let mut world = object(cell, body, "");
    let event = world.get("https://object/");
    assert_eq!(world.broken, None, "{body}");
    world.text(event)
}

fn state(cell: &Cell) -> AlarmState {
    cell.engine.borrow_mut().alarm_state().unwrap()
}

/// Runs the handler of what is armed, as the cell does.
fn fire(cell: &Cell, handler: &str) -> (World, EventId) {
    let armed = state(cell).armed.unwrap();
    cell.engine.borrow_mut().set_alarm_running(Some(armed.id));
    let mut world = object(cell, "", handler);
    let event = world.dispatch(EventCall::Alarm { scheduled: armed.deadline, retry_count: armed.attempts });
    cell.engine.borrow_mut().set_alarm_running(None);
    (world, event)
}

fn is_ended(world: &World, event: EventId) -> bool {
    world.effects.contains(&Effect::AlarmEnded { event, has_handler: true })
}

#[test]
fn arguments_are_checked_as_on_workerd() {
    let cell = Cell::new();
    let errors = |call: &str| fetched(&cell, &format!("return await error(() => {call})"));
    let date = "\"TypeError: Failed to execute 'setAlarm' on 'DurableObjectStorage': parameter 1 is not of type 'date'.\"";
    for argument in ["", "undefined", "null", "'2030'", "{}", "10n", "true", "[1e12]", "Symbol('x')"] {
        assert_eq!(errors(&format!("s.setAlarm({argument})")), date, "{argument}");
    }
    let invalid = "\"TypeError: The value cannot be converted because it is not a valid Date.\"";
    for argument in ["NaN", "Infinity", "-Infinity", "8.64e15 + 1", "new Date(NaN)", "-1e17"] {
        assert_eq!(errors(&format!("s.setAlarm({argument})")), invalid, "{argument}");
    }
    let past = "\"TypeError: setAlarm() cannot be called with an alarm time <= 0\"";
    for argument in ["-1", "0", "0.5", "new Date(0)", "-8.64e15"] {
        assert_eq!(errors(&format!("s.setAlarm({argument})")), past, "{argument}");
    }
    assert_eq!(
        errors("s.setAlarm(1e12, 5)"),
        "\"TypeError: Failed to execute 'setAlarm' on 'DurableObjectStorage': parameter 2 is not of type 'SetAlarmOptions'.\""
    );
    assert_eq!(
        errors("s.getAlarm(5)"),
        "\"TypeError: Failed to execute 'getAlarm' on 'DurableObjectStorage': parameter 1 is not of type 'GetAlarmOptions'.\""
    );
    assert_eq!(
        errors("s.deleteAlarm('x')"),
        "\"TypeError: Failed to execute 'deleteAlarm' on 'DurableObjectStorage': parameter 1 is not of type 'SetAlarmOptions'.\""
    );
    assert_eq!(
        errors("s.transaction(async t => t.setAlarm())"),
        "\"TypeError: Failed to execute 'setAlarm' on 'DurableObjectTransaction': parameter 1 is not of type 'date'.\""
    );
    assert_eq!(state(&cell), AlarmState::default());
}

#[test]
fn times_up_to_the_last_that_a_date_holds_are_kept_whole() {
    let cell = Cell::new();
    for (argument, kept) in
        [("1", "1"), ("1e12 + 0.7", "1000000000000"), ("new Date(8.64e15)", "8640000000000000")]
    {
        let body = format!("await s.setAlarm({argument}); return await s.getAlarm()");
        assert_eq!(fetched(&cell, &body), kept);
    }
    assert_eq!(fetched(&cell, "return await s.setAlarm(5, null)"), "undefined");
    assert_eq!(
        fetched(&cell, "await s.deleteAlarm(); await s.deleteAlarm(); return await s.getAlarm()"),
        "null"
    );
}

#[test]
fn a_class_without_a_handler_cannot_set_an_alarm() {
    let text =
        "TypeError: Your Durable Object class must have an alarm() handler in order to call setAlarm()";
    assert_eq!(run("return await error(() => s.setAlarm(1e12))"), format!("{text:?}"));
    assert_eq!(
        run("return await error(() => s.transaction(async t => t.setAlarm(1e12)))"),
        format!("{text:?}")
    );
    assert!(run("return [await s.getAlarm(), await error(() => s.setAlarm(0))]").contains("<= 0"));
}

#[test]
fn an_alarm_is_part_of_its_transaction() {
    let cell = Cell::new();
    assert_eq!(
        fetched(
            &cell,
            "await s.setAlarm(1e12);
            await s.transaction(async t => { await t.setAlarm(2e12); t.rollback(); });
            const undone = await s.getAlarm();
            await error(() => s.transaction(async t => { await t.deleteAlarm(); throw new Error('x'); }));
            try { s.transactionSync(() => { s.setAlarm(3e12); throw new Error('y'); }); } catch {}
            const kept = await s.getAlarm();
            await s.transaction(async t => { await t.setAlarm(4e12); });
            return [undone, kept, await s.getAlarm()]"
        ),
        "[1000000000000,1000000000000,4000000000000]"
    );
}

#[test]
fn an_installation_has_a_number_that_is_never_used_twice() {
    let cell = Cell::new();
    cell.engine.borrow_mut().set_alarm_epoch(Epoch::new(3));
    fetched(&cell, "await s.setAlarm(1e12)");
    let id = |epoch, seq| AlarmId { epoch: Epoch::new(epoch), seq: AlarmSeq::new(seq) };
    let armed = |cell: &Cell| state(cell).armed.map(|armed| armed.id);
    assert_eq!(armed(&cell), Some(id(3, 1)));
    fetched(&cell, "await s.setAlarm(1e12)");
    assert_eq!(armed(&cell), Some(id(3, 1)), "the same once more is no installation");
    cell.engine.borrow_mut().set_alarm_epoch(Epoch::new(4));
    assert_eq!(armed(&cell), Some(id(3, 1)), "it keeps its name over takeovers");
    fetched(&cell, "await s.deleteAll(); await s.deleteAlarm(); await s.setAlarm(1e12)");
    assert_eq!(armed(&cell), Some(id(4, 2)));
}

#[test]
fn changes_are_told_once_they_are_committed_and_are_one_capture_with_the_rest() {
    let cell = Cell::new();
    fetched(&cell, "await s.put('a', 1); await s.setAlarm(1e12); await s.setAlarm(2e12)");
    let mut engine = cell.engine.borrow_mut();
    let change = engine.take_alarm_change().unwrap().unwrap();
    assert_eq!(change.armed.unwrap().deadline, AlarmTime::new(2_000_000_000_000));
    assert_eq!(engine.take_alarm_change().unwrap(), None);
    assert!(engine.capture(Millis::new(1)).unwrap().is_some());
    assert!(!engine.is_dirty());
}

#[test]
fn the_handler_sees_no_alarm_and_consumes_it_with_its_last_commit() {
    let cell = Cell::new();
    fetched(&cell, "await s.setAlarm(1e12)");
    let (world, event) = fire(
        &cell,
        "await s.put('seen', [info.scheduledTime, info.retryCount, info.isRetry, String(info), await s.getAlarm()])",
    );
    assert!(is_ended(&world, event) && world.is_done(event));
    assert_eq!(state(&cell).armed, None);
    assert_eq!(
        fetched(&cell, "return [await s.getAlarm(), ...await s.get('seen')]"),
        r#"[null,1000000000000,0,false,"[object AlarmInvocationInfo]",null]"#
    );
}

#[test]
fn a_handler_that_throws_leaves_the_alarm_and_what_it_wrote() {
    let cell = Cell::new();
    fetched(&cell, "await s.setAlarm(1e12)");
    let before = state(&cell);
    let (world, event) = fire(&cell, "await s.put('ran', true); throw new Error('no')");
    assert_eq!(world.failed(event), "Error: no");
    assert!(!is_ended(&world, event));
    assert_eq!(state(&cell), before);
    assert_eq!(fetched(&cell, "return [await s.getAlarm(), await s.get('ran')]"), "[1000000000000,true]");
}

#[test]
fn what_the_handler_sets_or_deletes_stands() {
    for (handler, left) in [
        ("await s.setAlarm(2e12); await s.put('x', await s.getAlarm())", "2000000000000"),
        ("await s.setAlarm(1e12)", "1000000000000"),
        ("await s.setAlarm(2e12); throw new Error('x')", "2000000000000"),
        ("await s.deleteAlarm(); throw new Error('x')", "null"),
        ("await s.deleteAll()", "null"),
        ("await s.deleteAlarm(); await s.deleteAll()", "null"),
        ("await s.deleteAll(); await s.setAlarm(3e12)", "3000000000000"),
    ] {
        let cell = Cell::new();
        fetched(&cell, "await s.put('k', 1); await s.setAlarm(1e12)");
        let (world, _) = fire(&cell, handler);
        assert_eq!(world.broken, None, "{handler}");
        assert_eq!(fetched(&cell, "return await s.getAlarm()"), left, "{handler}");
    }
}

#[test]
fn an_end_that_cannot_be_committed_consumes_nothing() {
    let cell = Cell::new();
    fetched(
        &cell,
        "s.sql.exec('CREATE TABLE p(id PRIMARY KEY)');
        s.sql.exec('CREATE TABLE c(pid REFERENCES p(id) DEFERRABLE INITIALLY DEFERRED)');
        await s.setAlarm(1e12)",
    );
    let (world, event) = fire(&cell, "s.sql.exec(\"INSERT INTO c VALUES ('missing')\")");
    assert!(world.broken.is_some() && !is_ended(&world, event));
    assert_eq!(fetched(&cell, "return await s.getAlarm()"), "1000000000000");
}

#[test]
fn an_alarm_of_a_class_that_lost_its_handler_says_so_and_consumes_nothing() {
    let cell = Cell::new();
    fetched(&cell, "await s.setAlarm(1e12)");
    let mut world = cell.object("");
    let event = world.dispatch(EventCall::Alarm { scheduled: AlarmTime::new(1), retry_count: 0 });
    assert!(world.effects.contains(&Effect::AlarmEnded { event, has_handler: false }));
    assert!(state(&cell).armed.is_some());
}
