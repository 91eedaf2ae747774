//! `ctx.storage` in a real isolate over a real database.

use std::cell::RefCell;
use std::path::Path;
use std::rc::Rc;

use holdfast_sql::{Engine, EngineOptions};
use holdfast_types::Txid;
use tempfile::TempDir;

use crate::isolate::Limits;
use crate::testing::world::World;
use crate::testing::{application, limits};

mod alarm;
mod history;
mod kv;
mod sql;
mod transactions;
mod turns;

/// A cell's database; its objects come and go.
pub(super) struct Cell {
    pub(super) engine: Rc<RefCell<Engine>>,
    pub(super) folder: TempDir,
}

pub(super) fn open(path: &Path) -> Rc<RefCell<Engine>> {
    let folder = path.parent().unwrap();
    Rc::new(RefCell::new(Engine::open(path, Txid::ZERO, &EngineOptions::new(folder)).unwrap()))
}

impl Cell {
    pub(super) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self { engine: open(&folder.path().join("db")), folder }
    }

    /// A new object whose `fetch` answers what `body` returns, as JSON: with `s` the storage and `sql` its SQL.
    pub(super) fn object(&self, body: &str) -> World {
        self.object_within(body, limits())
    }

    pub(super) fn object_within(&self, body: &str, limits: Limits) -> World {
        let source = format!(
            "import {{ DurableObject }} from 'cloudflare:workers';
            const error = async f => {{ try {{ return await f(); }} catch (e) {{ return `${{e.name}}: ${{e.message}}`; }} }};
            const show = (key, value) => value instanceof Map ? [...value] : value instanceof ArrayBuffer ? {{ bytes: [...new Uint8Array(value)] }} : value === undefined ? 'undefined' : value;
            export class Test extends DurableObject {{
              async fetch(request) {{
                const s = this.ctx.storage, {{ sql }} = s;
                const value = await (async () => {{ {body} }})();
                return new Response(JSON.stringify(value, show) ?? 'undefined');
              }}
            }}"
        );
        World::object_over(application(&source), "Test", &self.engine, limits)
    }

    /// What `body` returns, as JSON.
    pub(super) fn run(&self, body: &str) -> String {
        let mut world = self.object(body);
        let event = world.get("https://object/");
        while world.broken.is_none()
            && world.response(event).is_none()
            && world.isolate.next_deadline().is_some()
        {
            world.wait();
        }
        assert_eq!(world.broken, None, "{body}");
        assert!(!self.engine.borrow().in_transaction(), "a transaction is open after {body}");
        world.text(event)
    }

    /// One value of the database, past the isolate.
    pub(super) fn one(&self, query: &str) -> i64 {
        self.run(&format!("return Object.values(sql.exec({query:?}).one())[0]")).parse().unwrap()
    }
}

/// What `body` returns over a new database.
pub(super) fn run(body: &str) -> String {
    Cell::new().run(body)
}
