//! What the modules answer is what Node 20 answers to the same code.

use std::sync::Arc;

use super::{FLAG, MODULES};
use crate::isolate::{Isolate, IsolateKind};
use crate::testing::{application, at, limits};

/// What `answer` is once a module has run, as JSON.
fn answer(source: &str) -> String {
    let code = application(source).compatibility("2024-09-23", [FLAG.to_owned()]);
    let mut isolate = Isolate::new(&Arc::new(code), IsolateKind::Worker, limits(), at(0)).unwrap();
    isolate.probe(at(0), "return JSON.stringify(await answer)");
    isolate.probed()[1].clone()
}

fn refusal(source: &str, flags: &[&str]) -> String {
    let code = application(source).compatibility("2026-08-03", flags.iter().map(|flag| (*flag).to_owned()));
    let started = Isolate::new(&Arc::new(code), IsolateKind::Worker, limits(), at(0));
    started.err().expect("it does not start").to_string()
}

#[test]
fn a_module_of_node_needs_the_flag_and_one_that_is_not_there_is_named() {
    for module in MODULES.iter().filter(|module| super::has(module.name)) {
        let import = format!("import '{}';", module.name);
        let text = refusal(&import, &["no_nodejs_compat"]);
        assert!(text.contains(&format!("No such module \"{}\"", module.name)), "{text}");
        assert!(text.contains("imported from \"main.js\"") && text.contains("\"nodejs_compat\""), "{text}");
        assert_eq!(answer(&format!("{import} globalThis.answer = 1;")), "1");
    }
    let hooks = "import 'node:async_hooks';";
    let code = application(hooks).compatibility("2026-08-03", ["nodejs_als".to_owned()]);
    assert!(Isolate::new(&Arc::new(code), IsolateKind::Worker, limits(), at(0)).is_ok(), "a flag of its own");
    let internal = refusal("import 'node:internal/base';", &[FLAG]);
    assert!(internal.contains("the module \"node:internal/base\" is not supported yet"), "{internal}");
    let absent = refusal("import 'node:fs';", &[FLAG]);
    assert!(absent.contains("the module \"node:fs\" is not supported yet"), "{absent}");
}

#[test]
fn emitters_call_their_listeners() {
    let answered = answer(
        "import Emitter, { EventEmitter, once, errorMonitor } from 'node:events';
         const log = [];
         class Bell extends EventEmitter {}
         const bell = new Bell();
         bell.on('newListener', name => log.push(`new ${String(name)}`));
         bell.on('ring', function (...args) { log.push(this === bell, args); });
         bell.once('ring', () => log.push('once'));
         bell.prependListener('ring', () => log.push('first'));
         log.push(bell.emit('ring', 1, 2), bell.emit('ring'), bell.emit('silence'), bell.listenerCount('ring'));
         bell.on(errorMonitor, value => log.push(`seen ${value}`));
         for (const value of [new TypeError('mine'), 'text']) {
           try { bell.emit('error', value); } catch (error) { log.push(`${error} ${error.code}`); }
         }
         try { bell.on('ring', null); } catch (error) { log.push(`${error.code}: ${error.message}`); }
         queueMicrotask(() => bell.emit('late', 7));
         globalThis.answer = once(bell, 'late').then(args => [...log, args, Emitter === EventEmitter]);",
    );
    assert_eq!(
        answered,
        concat!(
            r#"["new ring","new ring","new ring","first",true,[1,2],"once","first",true,[],true,true,false,2,"#,
            r#""new Symbol(events.errorMonitor)","seen TypeError: mine","TypeError: mine undefined","#,
            r#""seen text","Error [ERR_UNHANDLED_ERROR]: Unhandled error. ('text') ERR_UNHANDLED_ERROR","#,
            r#""ERR_INVALID_ARG_TYPE: The \"listener\" argument must be of type function. Received null","#,
            r#""new late","new error",[7],true]"#,
        )
    );
}

#[test]
fn paths_are_those_of_posix() {
    let answered = answer(
        "import path, { join, posix } from 'node:path';
         import same from 'node:path/posix';
         const told = value => { try { return path.dirname(value); } catch (error) { return `${error.code}: ${error.message}`; } };
         globalThis.answer = [
           join('/a', '..', '../b', './c/'), path.normalize('./a//../..'), path.resolve('/x', 'y', '../z'),
           path.relative('/a/b/c', '/a/d'), path.basename('/q/w.tar.gz/', '.gz'), path.extname('.profile'),
           path.dirname('//a'), path.parse('/home/u/f.txt'), path.format({ root: '/', name: 'f', ext: 'x' }), told(5),
           posix === path, same === path,
         ];",
    );
    assert_eq!(
        answered,
        concat!(
            r#"["/b/c/","..","/x/z","../../d","w.tar","","//","#,
            r#"{"root":"/","dir":"/home/u","base":"f.txt","ext":".txt","name":"f"},"/f.x","#,
            r#""ERR_INVALID_ARG_TYPE: The \"path\" argument must be of type string. Received type number (5)",true,true]"#,
        )
    );
}

#[test]
fn query_strings_are_read_and_written() {
    let answered = answer(
        "import qs, { parse, stringify } from 'node:querystring';
         const bad = () => { try { qs.escape('\\ud800'); } catch (error) { return `${error.name} ${error.code}`; } };
         globalThis.answer = [
           parse('a=1&b=%C3%A9+x&a=2&c&=d&&e==%zz'), parse('a:1;b:2', ';', ':', { maxKeys: 1 }),
           parse('a=%ff'), stringify({ a: [1, 'x y'], b: null, c: true, d: NaN, e: 10n }), qs.unescape('%41%'), bad(),
           Object.getPrototypeOf(parse('a')),
         ];",
    );
    assert_eq!(
        answered,
        concat!(
            r#"[{"a":["1","2"],"b":"é x","c":"","":"d","e":"=%zz"},{"a":"1"},{"a":"�"},"#,
            r#""a=1&a=x%20y&b=&c=true&d=&e=10","A%","URIError ERR_INVALID_URI",null]"#,
        )
    );
}

fn isolate(source: &str, date: &str, flags: &[&str]) -> Isolate {
    let code = application(source).compatibility(date, flags.iter().map(|flag| (*flag).to_owned()));
    Isolate::new(&Arc::new(code), IsolateKind::Worker, limits(), at(0)).unwrap()
}

#[test]
fn globals_come_with_the_modules_from_a_date_on() {
    let globals = |date, flags: &[&str]| {
        let mut isolate = isolate("", date, flags);
        isolate.probe(
            at(0),
            "return ['Buffer', 'process', 'global', 'setImmediate'].map(name => typeof globalThis[name]).join()",
        );
        isolate.probed()[1].clone()
    };
    let (there, absent) = ("function,object,object,function", "undefined,undefined,undefined,undefined");
    assert_eq!(globals("2026-08-04", &[]), there);
    assert_eq!(globals("2026-08-04", &["no_nodejs_compat"]), absent);
    assert_eq!(globals("2026-08-03", &[]), absent);
    assert_eq!(globals("2024-09-23", &[FLAG]), there);
    assert_eq!(globals("2024-09-22", &[FLAG]), absent);
    assert_eq!(globals("2024-09-22", &["nodejs_compat_v2"]), there);
}

#[test]
fn an_isolate_that_uses_nothing_of_node_pays_for_five_names() {
    let without = isolate("", "2026-08-03", &[]).memory_bytes();
    let with = isolate("", "2026-08-04", &[]).memory_bytes();
    assert!((1..3 << 10).contains(&(with - without)), "{with} bytes, without {without}");
}

#[test]
fn a_store_follows_what_interleaves() {
    let answered = answer(
        "import { AsyncLocalStorage } from 'node:async_hooks';
         const storage = new AsyncLocalStorage();
         const rejected = async thenable => { try { await thenable; } catch { return storage.getStore(); } };
         const work = async name => {
           const seen = new Set();
           for (let at = 0; at < 6; at += 1) {
             await (at % 2 ? null : { then: done => queueMicrotask(done) });
             seen.add(storage.getStore());
             await Promise.resolve().then(() => seen.add(storage.getStore()));
             seen.add(await rejected(Promise.reject(1)));
           }
           return [name, ...seen];
         };
         globalThis.answer = Promise.all(['a', 'b', 'c'].map(name => storage.run(name, work, name)))
           .then(all => [...all, storage.getStore() === undefined]);",
    );
    assert_eq!(answered, r#"[["a","a"],["b","b"],["c","c"],true]"#);
}

#[test]
fn rejections_that_nobody_waits_for_are_told_beside_stores() {
    let source = "import { AsyncLocalStorage } from 'node:async_hooks';
         globalThis.storage = new AsyncLocalStorage();";
    let mut isolate = isolate(source, "2026-11-01", &[]);
    let turn = isolate.probe(
        at(0),
        "storage.run(1, () => { Promise.reject(new Error('lost')); });
         storage.run(2, async () => { await null; throw new Error('lost too'); });
         storage.run(3, async () => { await Promise.reject(new Error('kept')); }).catch(() => {});",
    );
    let logged = format!("{:?}", turn.effects);
    assert!(logged.contains("Error: lost"), "{logged}");
    assert!(logged.contains("lost too") && !logged.contains("kept"), "{logged}");
}

#[test]
fn isolates_with_stores_are_dropped_in_any_state() {
    let source = "import { AsyncLocalStorage } from 'node:async_hooks';
         const storage = new AsyncLocalStorage();
         storage.run({}, async () => { await new Promise(() => {}); });
         storage.run({}, () => setInterval(() => {}, 5));
         storage.run({}, async () => { await { then() {} }; });";
    for _ in 0..100 {
        let mut isolate = isolate(source, "2026-11-01", &[]);
        isolate.probe(at(0), "await new Promise(() => {});");
    }
}
