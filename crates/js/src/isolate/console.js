// console, and reports of exceptions that nothing caught: all of it goes to the log.
export default function (native, internals) {
  const DEBUG = 0, LOG = 1, INFO = 2, WARN = 3, ERROR = 4;
  let indent = '';
  const counts = new Map();
  const timers = new Map();

  function text(args) {
    let line = '';
    if (args.every(argument => typeof argument === 'string') && !args[0]?.includes('%')) {
      line = args.join(' ');
    } else {
      internals.load('inspect');
      line = internals.format(args);
    }
    return indent === '' ? line : indent + line.replaceAll('\n', '\n' + indent);
  }

  const print = (level, args) => native.log(level, text(args));

  /** An exception that nothing can catch: of a timer, a listener, a promise of waitUntil. */
  internals.reportError = (error, prefix = 'Uncaught') => {
    internals.load('inspect');
    native.log(ERROR, `${prefix} ${internals.inspect(error)}`);
  };

  const elapsed = label => `${label}: ${(performance.now() - timers.get(label)).toFixed(3)}ms`;

  const console = {
    debug: (...args) => print(DEBUG, args),
    log: (...args) => print(LOG, args),
    info: (...args) => print(INFO, args),
    warn: (...args) => print(WARN, args),
    error: (...args) => print(ERROR, args),
    dir: value => print(LOG, [value]),
    dirxml: (...args) => print(LOG, args),
    table: value => print(LOG, [value]),
    trace: (...args) => print(DEBUG, [`Trace: ${text(args)}\n${new Error().stack.trimEnd()}`]),
    assert: (condition, ...args) => {
      if (condition) return;
      if (typeof args[0] === 'string') print(ERROR, [`Assertion failed: ${args[0]}`, ...args.slice(1)]);
      else print(ERROR, ['Assertion failed', ...args]);
    },
    count: (label = 'default') => {
      const count = (counts.get(`${label}`) ?? 0) + 1;
      counts.set(`${label}`, count);
      print(INFO, [`${label}: ${count}`]);
    },
    countReset: (label = 'default') => {
      counts.delete(`${label}`);
    },
    time: (label = 'default') => {
      timers.set(`${label}`, performance.now());
    },
    timeLog: (label = 'default', ...args) => {
      if (timers.has(`${label}`)) print(INFO, [elapsed(`${label}`), ...args]);
    },
    timeEnd: (label = 'default') => {
      if (!timers.has(`${label}`)) return;
      print(INFO, [elapsed(`${label}`)]);
      timers.delete(`${label}`);
    },
    group: (...args) => {
      if (args.length > 0) print(LOG, args);
      indent += '  ';
    },
    groupCollapsed: (...args) => console.group(...args),
    groupEnd: () => {
      indent = indent.slice(2);
    },
    clear: () => {},
    timeStamp: () => {},
  };
  internals.define(console, { [Symbol.toStringTag]: 'console' });

  return {
    console,
    reportError: function reportError(error) {
      internals.reportError(error);
    },
  };
}
