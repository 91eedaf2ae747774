// `node:process`, and the global of it: an emitter with facts, of which most are the same everywhere.
import { EventEmitter } from 'node:events';
import { coded, internals, native, notImplemented, provide, requireText } from 'node:internal/base';

const { hasVariables } = native('process');

// Names of libraries' checks: a Worker's process on Cloudflare has the same.
const NODE_VERSION = '22.23.4';
const NAME = 'workerd';
let directory = '/bundle';

const process = Object.create(Object.create(EventEmitter.prototype, {
  [Symbol.toStringTag]: { value: 'process', configurable: true },
}));
EventEmitter.call(process);

// ---- What the application is given.

const variables = Object.create(Object.prototype);
for (const [name, text] of hasVariables ? internals.variables() : []) variables[name] = text;

/** Texts alone, as an environment has. */
export const env = new Proxy(variables, {
  set(target, name, value) {
    target[name] = `${value}`;
    return true;
  },
  defineProperty(target, name, descriptor) {
    if ('value' in descriptor) descriptor = { ...descriptor, value: `${descriptor.value}` };
    return Reflect.defineProperty(target, name, descriptor);
  },
});

// ---- Time.

export function hrtime(before = undefined) {
  if (before !== undefined && !(Array.isArray(before) && before.length === 2)) {
    throw coded(new TypeError(`The "time" argument must be tuple of integers. Received type ${typeof before} (${String(before)})`), 'ERR_INVALID_ARG_TYPE');
  }
  const now = performance.timeOrigin + performance.now();
  let seconds = Math.floor(now / 1000);
  let nanoseconds = Math.floor(now % 1000 * 1e6);
  if (before !== undefined) {
    seconds -= before[0];
    nanoseconds -= before[1];
    if (nanoseconds < 0) {
      seconds -= 1;
      nanoseconds += 1e9;
    }
  }
  return [seconds, nanoseconds];
}
hrtime.bigint = () => BigInt(Math.floor(performance.now() * 1e6)) + BigInt(performance.timeOrigin) * 1_000_000n;

export const uptime = () => performance.now() / 1000;

// ---- What comes later.

const queue = globalThis.queueMicrotask;

export function nextTick(callback, ...args) {
  queue(() => callback(...args));
}

export function emitWarning(warning, ...rest) {
  const options = typeof rest[0] === 'object' && rest[0] !== null ? rest[0] : { type: rest[0], code: rest[1] };
  const error = warning instanceof Error ? warning : Object.assign(new Error(warning), { name: options.type ?? 'Warning' });
  if (options.code !== undefined && error.code === undefined) error.code = options.code;
  nextTick(() => process.emit('warning', error));
}

// ---- Where it is.

export const cwd = () => directory;

export function chdir(path) {
  requireText(path, 'directory');
  directory = internals.builtins['node:path']?.resolve(directory, path) ?? path;
}

export function umask(mask = undefined) {
  const isMask = mask === undefined || (Number.isInteger(mask) && mask >= 0) || /^[0-7]+$/.test(mask);
  if (!isMask) {
    internals.load('inspect');
    const message = `The argument 'mask' must be a 32-bit unsigned integer or an octal string. Received ${internals.inspect(mask)}`;
    throw coded(new TypeError(message), 'ERR_INVALID_ARG_VALUE');
  }
  return 0o22;
}

/** A module of Node by its name, with or without its prefix; undefined where there is none. */
export function getBuiltinModule(name) {
  requireText(name, 'id');
  return native('process').require(name.startsWith('node:') ? name : `node:${name}`);
}

function memoryUsage() {
  return { rss: 0, heapTotal: 0, heapUsed: 0, external: 0, arrayBuffers: 0 };
}

function exit() {
  throw notImplemented('process.exit');
}

/** A stream of text to the log. */
const toLog = (write, fd) => ({
  fd, isTTY: false, writable: true,
  write(chunk, ...rest) {
    write(`${chunk}`.replace(/\n$/, ''));
    rest.findLast(each => typeof each === 'function')?.();
    return true;
  },
});

const missing = {};
for (const name of ['abort', 'binding', 'dlopen', 'cpuUsage', 'resourceUsage', 'kill', '_linkedBinding']) {
  missing[name] = { [name]() { throw notImplemented(`process.${name}`); } }[name];
}

export const version = `v${NODE_VERSION}`;
export const versions = { node: NODE_VERSION };
export const platform = 'linux';
export const arch = 'x64';
export const release = { name: 'node', lts: true, sourceUrl: '', headersUrl: '' };
export const features = {
  inspector: false, debug: false, uv: false, ipv6: true, tls: true, tls_alpn: true, tls_ocsp: true, tls_sni: true, typescript: false,
};
export const argv = [NAME];
export const execArgv = [];
export const title = NAME;
export const pid = 1;
export const ppid = 0;

Object.assign(process, {
  env, hrtime, uptime, nextTick, emitWarning, cwd, chdir, umask, getBuiltinModule, memoryUsage, exit, ...missing, version, versions,
  platform, arch, release, features, argv, argv0: NAME, execArgv, execPath: '', title, pid, ppid, exitCode: undefined,
  config: { target_defaults: {}, variables: {} }, stdout: toLog(text => console.log(text), 1), stderr: toLog(text => console.error(text), 2),
  getuid: () => 0, geteuid: () => 0, getgid: () => 0, getegid: () => 0, getgroups: () => [],
});

export { memoryUsage, exit };
export const { stdout, stderr, config, execPath, argv0 } = process;
export const on = process.on.bind(process);
export const once = process.once.bind(process);
export const off = process.off.bind(process);
export const emit = process.emit.bind(process);

export default provide('node:process', process);
