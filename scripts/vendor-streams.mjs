#!/usr/bin/env node
// Makes crates/js/src/node/stream/readable_stream.js, and its LICENSE, from the npm package of Node's own streams: the same
// bytes each time. The version and the hash of its archive are pinned here; to take another, change both. With `--check` it
// only says whether the files are what it would make. Needs node and npm.
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, posix } from 'node:path';
import { fileURLToPath } from 'node:url';

const NAME = 'readable-stream';
const VERSION = '4.8.0';
const INTEGRITY = 'sha512-2jhTTU3Eilp/2DMT71gbcoqC35eQHasMJH0RHkYxwlxIv3+FR6Y5xAFZIwEGLxKkjZYEFlsiMNIdwUqjK2lLHQ==';
const ENTRY = 'lib/stream.js';
// Modules of the runtime that take the place of packages and of a shim of the package's own.
const OURS = {
  buffer: 'node:buffer',
  events: 'node:events',
  'string_decoder/': 'node:string_decoder',
  'lib/internal/shims/process.js': 'node:process',
};
// What the runtime has as globals.
const GLOBALS = { 'abort-controller': 'globalThis' };

const folder = join(dirname(dirname(fileURLToPath(import.meta.url))), 'crates/js/src/node/stream');

function unpack(into) {
  execFileSync('npm', ['pack', `${NAME}@${VERSION}`, '--silent', '--pack-destination', into]);
  const archive = join(into, `${NAME}-${VERSION}.tgz`);
  const hash = `sha512-${createHash('sha512').update(readFileSync(archive)).digest('base64')}`;
  if (hash !== INTEGRITY) throw new Error(`${NAME}@${VERSION} is not what is pinned: ${hash}`);
  execFileSync('tar', ['xzf', archive, '-C', into]);
  return join(into, 'package');
}

// What a module requires: a file of the package, a module of the runtime, or a global.
function target(from, specifier) {
  if (!specifier.startsWith('.')) return specifier;
  const path = posix.join(posix.dirname(from), specifier);
  return path.endsWith('.js') ? path : `${path}.js`;
}

function bundle(from) {
  const found = new Map();
  const visit = path => {
    if (found.has(path)) return;
    found.set(path, '');
    const source = readFileSync(join(from, path), 'utf8');
    const rewritten = source.replace(/\brequire\('([^']+)'\)/g, (_, specifier) => {
      const to = target(path, specifier);
      if (to in GLOBALS) return GLOBALS[to];
      if (to in OURS) return `ours['${OURS[to]}']`;
      visit(to);
      return `need('${to}')`;
    });
    found.set(path, rewritten);
  };
  visit(ENTRY);
  const names = Object.values(OURS).sort();
  const lines = [
    `// ${NAME} ${VERSION} (MIT, see LICENSE): the streams of Node. Made by scripts/vendor-streams.mjs; change that, not this.`,
    ...names.map((name, index) => `import ours${index} from '${name}';`),
    `const ours = { ${names.map((name, index) => `'${name}': ours${index}`).join(', ')} };`,
    'const made = Object.create(null);',
    'function need(name) {',
    '  if (made[name] === undefined) {',
    '    made[name] = { exports: {} };',
    '    files[name](made[name]);',
    '  }',
    '  return made[name].exports;',
    '}',
    'const files = {',
  ];
  for (const [path, source] of [...found].sort(([a], [b]) => (a < b ? -1 : 1))) {
    lines.push(`'${path}'(module) {`, source.trimEnd(), '},');
  }
  lines.push('};', `export default need('${ENTRY}');`, '');
  return lines.join('\n');
}

const work = mkdtempSync(join(tmpdir(), 'vendor-streams-'));
try {
  const from = unpack(work);
  const files = { 'readable_stream.js': bundle(from), LICENSE: readFileSync(join(from, 'LICENSE'), 'utf8') };
  for (const [name, text] of Object.entries(files)) {
    const path = join(folder, name);
    if (!process.argv.includes('--check')) writeFileSync(path, text);
    else if (readFileSync(path, 'utf8') !== text) throw new Error(`${path} is not what scripts/vendor-streams.mjs makes`);
  }
} finally {
  rmSync(work, { recursive: true });
}
