//! Runs of `scheduled`: when, how often, and what is left of one that its process did not survive.

use std::cell::RefCell;
use std::rc::Rc;

use holdfast_core::alarm::AlarmState;
use holdfast_sql::{Engine, EngineOptions};
use holdfast_types::Txid;
use tempfile::TempDir;

use super::CRON_CLASS;
use crate::effect::{Effect, EventCall, EventId, RunEnd};
use crate::testing::world::World;
use crate::testing::{WALL_MS, application, limits};

const SOURCE: &str = "
    export default {
      async scheduled(controller, env, ctx) {
        console.log(`${controller.cron} ${new Date(controller.scheduledTime).toISOString().slice(11, 16)}`);
        if (controller.cron === '*/7 * * * *') throw new Error('seven');
        if (controller.cron === '0 * * * *') { await scheduler.wait(5 * 60_000); console.log('slept'); }
        if (controller.cron === '1 * * * *') await new Promise(() => {});
        if (controller.cron === '2 * * * *') {
          controller.noRetry();
          ctx.waitUntil(scheduler.wait(1).then(() => console.log(`${this === handlers} ${typeof env} ${controller}`)));
        }
      },
    };
    import handlers from 'main.js';
";
const MINUTE: u64 = 60_000;

/// The object, over all its isolates. It begins at midnight.
struct Crons {
    engine: Rc<RefCell<Engine>>,
    world: World,
    ms: u64,
    _folder: TempDir,
}

impl Crons {
    fn new(crons: &[&str]) -> Self {
        Self::of(SOURCE, crons)
    }

    fn of(source: &str, crons: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let options = EngineOptions::new(folder.path());
        let engine = Engine::open(&folder.path().join("db"), Txid::ZERO, &options).unwrap();
        let engine = Rc::new(RefCell::new(engine));
        let world = world(&engine, source, crons);
        let mut crons = Self { engine, world, ms: 0, _folder: folder };
        let event = crons.world.get("http://cron/");
        assert_eq!(crons.world.text(event), "v1");
        crons
    }

    /// Another isolate, in another process.
    fn restart(&mut self, source: &str, crons: &[&str]) {
        self.world = world(&self.engine, source, crons);
        self.world.pass(self.ms);
    }

    fn state(&self) -> AlarmState {
        self.engine.borrow_mut().alarm_state().unwrap()
    }

    /// When the alarm is due, in minutes of the day.
    fn armed(&self) -> Option<u64> {
        let deadline = self.state().armed?.deadline.get();
        Some((u64::try_from(deadline).unwrap() - WALL_MS).div_ceil(MINUTE))
    }

    /// Lets the alarm fire at this minute of the day, and what it starts begin.
    fn fire(&mut self, minute: u64) -> EventId {
        let ms = minute * MINUTE;
        self.world.pass(ms - self.ms);
        self.ms = ms;
        let armed = self.state().armed.expect("an alarm is set");
        self.engine.borrow_mut().set_alarm_running(Some(armed.id));
        let event = self.world.dispatch(EventCall::Alarm { scheduled: armed.deadline, retry_count: 0 });
        self.engine.borrow_mut().set_alarm_running(None);
        assert_eq!(self.world.broken, None);
        assert!(self.world.effects.contains(&Effect::AlarmEnded { event, has_handler: true }));
        if !self.world.is_done(event) {
            self.world.wait();
        }
        event
    }

    fn ends(&self) -> Vec<RunEnd> {
        let ended = |effect: &Effect| match effect {
            Effect::ScheduledEnded { end } => Some(*end),
            _ => None,
        };
        self.world.effects.iter().filter_map(ended).collect()
    }
}

fn world(engine: &Rc<RefCell<Engine>>, source: &str, crons: &[&str]) -> World {
    let code = application(source).scheduled(crons.iter().map(|&cron| cron.to_owned()));
    World::object_over(code, CRON_CLASS, engine, limits())
}

#[test]
fn each_occurrence_is_run_once_at_its_time() {
    let mut crons = Crons::new(&["* * * * *", "*/2 * * * *"]);
    assert_eq!(crons.armed(), Some(1), "the minute that runs already is over");
    let event = crons.fire(1);
    assert!(crons.world.is_done(event));
    assert_eq!(crons.armed(), Some(2));
    crons.fire(2);
    assert_eq!(crons.world.log(), ["* * * * * 00:01", "* * * * * 00:02", "*/2 * * * * 00:02"]);
    assert_eq!(crons.ends(), [RunEnd::Ok; 3]);
    assert_eq!(crons.armed(), Some(3));
}

#[test]
fn what_came_while_nothing_ran_is_one_occurrence() {
    let mut crons = Crons::new(&["*/5 * * * *"]);
    crons.fire(33);
    assert_eq!(crons.world.log(), ["*/5 * * * * 00:30"]);
    assert_eq!(crons.armed(), Some(35));
}

#[test]
fn a_handler_that_throws_is_not_run_again() {
    let mut crons = Crons::new(&["*/7 * * * *"]);
    crons.fire(7);
    let log = crons.world.log();
    assert!(log[1].starts_with("Uncaught (in scheduled) Error: seven"), "{log:?}");
    assert_eq!(crons.ends(), [RunEnd::Failed]);
    assert_eq!(crons.armed(), Some(14));

    let mut crons = Crons::of("export default {};", &["*/7 * * * *"]);
    crons.fire(7);
    let log = crons.world.log();
    assert!(log[0].contains("Handler does not export a scheduled() function."), "{log:?}");
}

#[test]
fn a_run_holds_up_no_other_and_is_not_begun_twice() {
    let mut crons = Crons::new(&["0 * * * *", "* * * * *"]);
    let event = crons.fire(60);
    assert_eq!(crons.world.log(), ["* * * * * 01:00", "0 * * * * 01:00"]);
    assert!(!crons.world.is_done(event));
    assert_eq!(crons.armed(), Some(61));
    crons.fire(61);
    assert_eq!(crons.world.log()[2..], ["* * * * * 01:01"]);
    // The clock of the isolate runs on with its own timer.
    crons.world.wait();
    assert_eq!(crons.world.log()[3..], ["slept"]);
    assert!(crons.world.is_done(event));
    assert_eq!(crons.ends().len(), 3);
}

#[test]
fn a_run_that_its_process_did_not_survive_is_begun_again_and_given_up_after_three() {
    let mut crons = Crons::new(&["0 * * * *"]);
    crons.fire(60);
    for minute in [61, 62] {
        assert_eq!(crons.armed(), Some(minute), "it is looked at again");
        crons.restart(SOURCE, &["0 * * * *"]);
        crons.fire(minute);
        assert_eq!(crons.world.log(), ["0 * * * * 01:00"], "the same occurrence");
    }
    crons.restart(SOURCE, &["0 * * * *"]);
    crons.fire(63);
    let log = crons.world.log();
    assert!(log[0].contains("\"0 * * * *\" of 2026-01-01T01:00:00.000Z is given up"), "{log:?}");
    assert_eq!(crons.ends(), [RunEnd::GivenUp]);
    assert_eq!(crons.armed(), Some(120));
}

#[test]
fn a_run_that_is_begun_again_is_of_the_same_occurrence_though_another_has_come() {
    const NEVER: &str = "export default { async scheduled({ scheduledTime }) {
        console.log(new Date(scheduledTime).toISOString().slice(11, 16));
        await new Promise(() => {});
    } };";
    let mut crons = Crons::of(NEVER, &["* * * * *"]);
    crons.fire(1);
    for minute in [2, 3] {
        crons.restart(NEVER, &["* * * * *"]);
        crons.fire(minute);
        assert_eq!(crons.world.log(), ["00:01"]);
    }
    crons.restart(NEVER, &["* * * * *"]);
    crons.fire(4);
    assert_eq!(crons.ends(), [RunEnd::GivenUp]);
    assert_eq!(crons.armed(), Some(2), "what came since is looked at at once");
    crons.fire(5);
    assert_eq!(crons.world.log()[1..], ["00:05"], "it is one occurrence");
}

#[test]
fn an_occurrence_of_a_new_expression_is_not_lost_to_a_node_that_runs_the_version_before() {
    let (old, new) = (&["*/30 * * * *"][..], &["*/30 * * * *", "*/10 * * * *"][..]);
    let look = |crons: &mut Crons| {
        let event = crons.world.get("http://cron/");
        assert_eq!(crons.world.text(event), "v1");
    };
    let mut crons = Crons::new(new);
    // A node of the version before has it over the time of the new expression.
    crons.world.pass(9 * MINUTE + 40_000);
    crons.ms = 9 * MINUTE + 40_000;
    crons.restart(SOURCE, old);
    look(&mut crons);
    assert_eq!(crons.armed(), Some(30), "what it cannot run it does not wait for");
    crons.world.pass(40_000);
    crons.ms += 40_000;
    crons.restart(SOURCE, new);
    look(&mut crons);
    assert_eq!(crons.armed(), Some(10));
    crons.fire(11);
    assert_eq!(crons.world.log(), ["*/10 * * * * 00:10"]);

    // One that was taken out is forgotten: when it comes back a day later nothing is made up for.
    crons.restart(SOURCE, old);
    look(&mut crons);
    crons.fire(30);
    assert_eq!(crons.world.log(), ["*/30 * * * * 00:30"]);
    crons.restart(SOURCE, new);
    look(&mut crons);
    assert_eq!(crons.armed(), Some(40));
}

#[test]
fn a_run_is_waited_for_fifteen_minutes() {
    let mut crons = Crons::new(&["1 * * * *"]);
    let event = crons.fire(1);
    assert_eq!(crons.armed(), Some(2));
    crons.world.wait();
    let log = crons.world.log();
    assert!(log[1].contains("ran for 15 minutes and is not waited for any more"), "{log:?}");
    assert_eq!(crons.ends(), [RunEnd::Failed]);
    assert!(crons.world.is_done(event));
    assert_eq!(crons.armed(), Some(61));
}

#[test]
fn handlers_get_what_they_get_at_cloudflare() {
    let mut crons = Crons::new(&["2 * * * *"]);
    let event = crons.fire(2);
    assert!(!crons.world.is_done(event), "it gave something to waitUntil");
    assert_eq!(crons.ends(), []);
    crons.world.wait();
    assert!(crons.world.is_done(event));
    assert_eq!(crons.ends(), [RunEnd::Ok], "what was given to waitUntil is a part of the run");
    assert_eq!(crons.world.log()[1..], ["true object [object ScheduledController]"]);

    let entrypoint = "
        import { WorkerEntrypoint } from 'cloudflare:workers';
        export default class extends WorkerEntrypoint {
          scheduled(controller) { console.log(`${controller.cron} ${typeof this.env} ${typeof this.ctx.waitUntil}`); }
        }";
    let mut crons = Crons::of(entrypoint, &["2 * * * *"]);
    crons.fire(2);
    assert_eq!(crons.world.log(), ["2 * * * * object function"]);
}

#[test]
fn another_version_has_its_own_expressions() {
    let mut crons = Crons::new(&["*/10 * * * *", "*/20 * * * *"]);
    crons.restart(SOURCE, &["*/20 * * * *", "*/3 * * * *"]);
    // Nobody has told it: its alarm finds out.
    crons.fire(10);
    assert_eq!(crons.world.log(), [""; 0]);
    assert_eq!(crons.armed(), Some(12));
    crons.restart(SOURCE, &[]);
    crons.fire(12);
    assert_eq!(crons.armed(), None, "there is nothing to run");
}
