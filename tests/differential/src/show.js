// A value as text, with all that tells one value from another.
const hex = bytes => [...bytes].map(byte => byte.toString(16).padStart(2, '0')).join('');

export async function show(value, seen = new Set()) {
  if (Object.is(value, -0)) return '-0';
  if (typeof value === 'string') return JSON.stringify(value);
  if (typeof value === 'bigint') return `${value}n`;
  if (typeof value === 'symbol') return String(value);
  if (typeof value === 'function') return `function ${value.name}`;
  if (typeof value !== 'object' || value === null) return String(value);
  if (seen.has(value)) return '<seen>';
  seen.add(value);
  const list = async values => {
    const shown = [];
    for (const value of values) shown.push(await show(value, seen));
    return shown.join(', ');
  };
  if (value instanceof Date) return `Date ${value.getTime()}`;
  if (value instanceof RegExp) return `RegExp ${value}`;
  if (value instanceof Error) return `${value.name}: ${value.message}`;
  if (value instanceof ArrayBuffer) return `ArrayBuffer ${hex(new Uint8Array(value))}`;
  if (ArrayBuffer.isView(value)) {
    const bytes = new Uint8Array(value.buffer, value.byteOffset, value.byteLength);
    return `${value.constructor.name} ${hex(bytes)}`;
  }
  if (value instanceof Headers) return `Headers [${await list([...value])}]`;
  if (value instanceof URLSearchParams) return `URLSearchParams ${value}`;
  if (value instanceof URL) return `URL ${value}`;
  if (value instanceof File) return `File ${JSON.stringify(value.name)} ${value.type} ${await show(await value.text(), seen)}`;
  if (value instanceof Blob) return `Blob ${value.type} ${await show(await value.text(), seen)}`;
  if (value instanceof FormData) return `FormData [${await list([...value])}]`;
  if (value instanceof Response) {
    return `Response ${value.status} ${JSON.stringify(value.statusText)} ${await show(value.headers, seen)} ${await show(await value.text(), seen)}`;
  }
  if (value instanceof Request) {
    return `Request ${value.method} ${value.url} ${await show(value.headers, seen)} ${await show(await value.text(), seen)}`;
  }
  if (value instanceof Map) return `Map {${await list([...value].flat())}}`;
  if (value instanceof Set) return `Set {${await list([...value])}}`;
  if (Array.isArray(value)) return `[${await list(value)}]`;
  const rows = [];
  for (const [key, inner] of Object.entries(value)) rows.push(`${key}: ${await show(inner, seen)}`);
  return `{${rows.join(', ')}}`;
}

// The name of what `body` throws: for errors whose text is the engine's own.
export async function errorName(body) {
  try {
    await body();
  } catch (error) {
    return error?.name;
  }
  return 'nothing was thrown';
}

// What `body` throws.
export async function thrown(body) {
  try {
    await body();
  } catch (error) {
    return error;
  }
  return 'nothing was thrown';
}

// All of a stream, chunk by chunk.
export async function chunks(stream) {
  const all = [];
  for await (const chunk of stream) all.push(chunk);
  return all;
}
