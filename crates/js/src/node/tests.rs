//! What the modules answer is what Node 20 answers to the same code.

use std::sync::Arc;

use rquickjs::Function;

use super::{FLAG, MODULES};
use crate::effect::{BrokenCause, TurnEnd};
use crate::isolate::{Isolate, IsolateKind};
use crate::prelude;
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
    // 3 KiB, and as much again where they are the names for which the global object's table grows.
    assert!((1..=6 << 10).contains(&(with - without)), "{with} bytes, without {without}");
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

#[test]
fn a_store_is_kept_at_the_end_of_the_stack() {
    let answered = answer(
        "import { AsyncLocalStorage } from 'node:async_hooks';
         const storage = new AsyncLocalStorage();
         const begun = [];
         // One that overflows the stack rejects; one that does not has the store that it was begun with.
         const step = async depth => { await 0; return storage.getStore() === depth; };
         const dive = depth => {
           try { begun.push(storage.run(depth, step, depth)); } catch {}
           dive(depth + 1);
         };
         // So that the frames do not end at the same place each time.
         const begin = above => { if (above === 0) dive(0); else begin(above - 1); };
         for (let above = 0; above < 8; above += 1) {
           try { begin(above); } catch {}
         }
         globalThis.answer = Promise.allSettled(begun).then(all => {
           const count = value => all.filter(end => end.value === value).length;
           return [count(true) > 500, count(false)];
         });",
    );
    assert_eq!(answered, "[true,0]");
}

#[test]
fn an_isolate_that_could_not_note_a_store_runs_no_more() {
    let mut isolate = isolate("import 'node:async_hooks';", "2026-11-01", &[]);
    isolate.context.with(|ctx| {
        let hook: Function<'_> = ctx.eval("(() => { throw new Error('not noted'); })").unwrap();
        prelude::internals(&ctx).set("promiseHook", hook).unwrap();
    });
    let end = isolate.probe(at(0), "await 0; return 1").end;
    assert!(
        matches!(&end, TurnEnd::Broken(BrokenCause::Internal(text)) if text.contains("not noted")),
        "{end:?}"
    );
}

#[test]
fn the_hook_of_promises_calls_nothing_of_a_handler() {
    let source = "import 'node:async_hooks';
         globalThis.seen = 0;
         for (const Class of [WeakMap, WeakSet]) {
           for (const name of ['add', 'get', 'has', 'set']) {
             if (name in Class.prototype) Class.prototype[name] = () => { globalThis.seen += 1; };
           }
         }";
    let mut isolate = isolate(source, "2026-11-01", &[]);
    isolate.probe(at(0), "await 0; await { then(done) { done(); } }; return globalThis.seen");
    assert_eq!(isolate.probed()[1], "0");
}

#[test]
fn a_turn_begins_without_the_store_of_the_turn_before() {
    let source = "import { AsyncLocalStorage } from 'node:async_hooks';
         globalThis.storage = new AsyncLocalStorage();
         globalThis.seen = [];
         globalThis.registry = new FinalizationRegistry(() => { seen.push(storage.getStore() ?? null); });";
    let mut isolate = isolate(source, "2026-11-01", &[]);
    isolate.probe(
        at(0),
        "storage.run('of another', async () => { for (let at = 0; at < 9; at += 1) await 0; });",
    );
    // What nobody refers to any more is told by a job of its own, which nothing enters.
    isolate.probe(at(1), "registry.register({}, 0);");
    isolate.probe(at(2), "return JSON.stringify(seen)");
    assert_eq!(isolate.probed()[1], "[null]");
}

#[test]
fn keys_are_derived_from_secrets_as_they_were_given_and_of_long_salts_not_many() {
    let answered = answer(
        "import { pbkdf2, pbkdf2Sync, hkdf, hkdfSync } from 'node:crypto';
         const given = () => [Buffer.from('password'), Buffer.from('salt')];
         const later = (derive, ...options) => new Promise((resolve, reject) => {
           const secrets = given();
           derive(...options.slice(0, 1).filter(() => derive === hkdf), ...secrets, ...options.slice(derive === hkdf ? 1 : 0), (error, key) => error ? reject(error) : resolve(Buffer.from(key).toString('hex')));
           secrets.forEach(secret => secret.fill(0));
         });
         const hex = key => Buffer.from(key).toString('hex');
         const told = derive => { try { derive(); return 'derived'; } catch (error) { return `${error.name}: ${error.message}`; } };
         globalThis.answer = Promise.all([
           later(pbkdf2, 2, 20, 'sha256').then(key => key === hex(pbkdf2Sync(...given(), 2, 20, 'sha256'))),
           later(hkdf, 'sha256', 'info', 20).then(key => key === hex(hkdfSync('sha256', ...given(), 'info', 20))),
           told(() => pbkdf2Sync('p', Buffer.alloc(64), 1, 64 * 1000, 'sha512')),
           told(() => pbkdf2Sync('p', Buffer.alloc(64 << 10), 1, 64 * 1000, 'sha512')),
         ]);",
    );
    assert_eq!(
        answered,
        r#"[true,true,"derived","RangeError: Pbkdf2 failed: more than 500000 iterations times blocks of output."]"#
    );
}

#[test]
fn streams_flow_are_piped_and_are_those_of_the_web() {
    let answered = answer(
        "import Stream, { Duplex, Readable, Transform, Writable, duplexPair } from 'node:stream';
         import { pipeline } from 'node:stream/promises';
         import { text, json } from 'node:stream/consumers';
         import { ReadableStream as OfWeb } from 'node:stream/web';
         const run = async () => {
           const seen = [];
           const upper = new Transform({ transform(chunk, _, done) { done(null, `${chunk}`.toUpperCase()); } });
           const sink = new Writable({ write(chunk, _, done) { seen.push(`${chunk}`); done(); } });
           await pipeline(Readable.from(['a', 'b']), upper, sink);
           const broken = new Transform({ transform(chunk, _, done) { done(new RangeError('no')); } });
           const source = Readable.from(['a']);
           const error = await pipeline(source, broken).then(() => 'ok', error => `${error} ${source.destroyed}`);
           const web = await new Response(Readable.toWeb(Readable.from([Buffer.from('web')], { objectMode: false }))).text();
           const node = await text(Readable.fromWeb(new Response('node').body));
           const [near, far] = duplexPair();
           near.end('{\"a\":1}');
           const both = Duplex.fromWeb(new TransformStream());
           both.end('both');
           return [seen, error, web, node, await json(far), await text(both), OfWeb === ReadableStream, Stream.Stream === Stream, sink.writableFinished];
         };
         globalThis.answer = run();",
    );
    let wanted = r#"[["A","B"],"RangeError: no true","web","node",{"a":1},"both",true,true,true]"#;
    assert_eq!(answered, wanted);
}

#[test]
fn a_chunk_that_finds_its_stream_full_waits_and_is_written() {
    let answered = answer(
        "import { Writable } from 'node:stream';
         const run = async () => {
           const seen = [];
           const stream = new Writable({ highWaterMark: 1, write(chunk, _, done) { seen.push(`${chunk}`); queueMicrotask(done); } });
           const web = Writable.toWeb(stream);
           stream.write('by itself');
           const writer = web.getWriter();
           const full = stream.writableNeedDrain;
           await writer.write('first');
           stream.write('again');
           await Promise.all([writer.write('second'), writer.close()]);
           return [full, seen];
         };
         globalThis.answer = run();",
    );
    assert_eq!(answered, r#"[true,["by itself","first","again","second"]]"#);
}
