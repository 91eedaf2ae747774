//! What the modules answer is what Node 20 answers to the same code.

use std::sync::Arc;

use super::{FLAG, MODULES};
use crate::isolate::{Isolate, IsolateKind};
use crate::testing::{application, at, limits};

/// What `answer` is once a module has run, as JSON.
fn answer(source: &str) -> String {
    let code = application(source).compatibility("2026-11-01", [FLAG.to_owned()]);
    let mut isolate = Isolate::new(&Arc::new(code), IsolateKind::Worker, limits(), at(0)).unwrap();
    isolate.probe(at(0), "return JSON.stringify(await answer)");
    isolate.probed()[1].clone()
}

fn refusal(source: &str, flags: &[&str]) -> String {
    let code = application(source).compatibility("2026-11-01", flags.iter().map(|flag| (*flag).to_owned()));
    let started = Isolate::new(&Arc::new(code), IsolateKind::Worker, limits(), at(0));
    started.err().expect("it does not start").to_string()
}

#[test]
fn a_module_of_node_needs_the_flag_and_one_that_is_not_there_is_named() {
    for module in &MODULES {
        let import = format!("import '{}';", module.name);
        let text = refusal(&import, &["nodejs_als"]);
        assert!(text.contains(&format!("No such module \"{}\"", module.name)), "{text}");
        assert!(text.contains("imported from \"main.js\"") && text.contains("\"nodejs_compat\""), "{text}");
        assert_eq!(answer(&format!("{import} globalThis.answer = 1;")), "1");
    }
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
