// Blob, File (File API) and FormData (XMLHttpRequest Standard). All content is in memory; slices share it.
export default function (native, internals) {
  internals.load('encoding');
  const { bytesOf, illegalInvocation, needArguments, toDictionary, toUsvString, utf8Decode, utf8Encode } = internals;
  const PLAIN_TYPE = /^[\x20-\x7e]*$/;
  const EMPTY = new Uint8Array(0);

  const normalizeType = (type) => {
    const text = `${type}`;
    return PLAIN_TYPE.test(text) ? text.toLowerCase() : '';
  };

  let stateOf;
  let made;
  class Blob {
    // { bytes, type }: nothing ever writes to `bytes`.
    #state;
    static {
      stateOf = (blob) => {
        if (!isBlob(blob)) throw illegalInvocation();
        return blob.#state;
      };
      internals.isBlob = (value) => typeof value === 'object' && value !== null && #state in value;
    }
    constructor(parts = undefined, options = undefined) {
      if (made !== undefined) {
        this.#state = made;
        made = undefined;
        return;
      }
      const { endings: given, type } = toDictionary(options, 'new Blob');
      const endings = given === undefined ? given : `${given}`;
      if (endings !== undefined && endings !== 'transparent' && endings !== 'native') {
        throw new TypeError(`Failed to construct 'Blob': the value '${endings}' is not a valid enum value of type EndingType.`);
      }
      this.#state = { bytes: join(parts, endings === 'native'), type: normalizeType(type ?? '') };
    }
    get size() { return stateOf(this).bytes.length; }
    get type() { return stateOf(this).type; }
    slice(start = 0, end = undefined, type = '') {
      const { bytes } = stateOf(this);
      return blobOf(bytes.subarray(clamp(start, bytes.length), end === undefined ? bytes.length : clamp(end, bytes.length)),
        normalizeType(type));
    }
    async text() { return utf8Decode(stateOf(this).bytes); }
    async arrayBuffer() { return stateOf(this).bytes.slice().buffer; }
    async bytes() { return stateOf(this).bytes.slice(); }
    stream() {
      const { bytes } = stateOf(this);
      internals.load('streams');
      return internals.streams.bytesStream(bytes.slice());
    }
  }
  const { isBlob } = internals;
  internals.interface(Blob);

  // [Clamp] long long; negative counts from the end in `subarray` as it does in `slice`.
  function clamp(value, length) {
    const number = Math.trunc(Number(value)) || 0;
    return Math.max(-length, Math.min(length, number));
  }

  function join(parts, isNative) {
    if (parts === undefined) return EMPTY;
    if (typeof parts !== 'object' || parts === null || typeof parts[Symbol.iterator] !== 'function') {
      throw new TypeError("Failed to construct 'Blob': the object must have a callable @@iterator property.");
    }
    const chunks = [];
    let total = 0;
    for (const part of parts) {
      const text = isNative ? (value) => `${value}`.replace(/\r\n|\r/g, '\n') : (value) => value;
      const bytes = isBlob(part) ? stateOf(part).bytes : bytesOf(part) ?? utf8Encode(text(part));
      // Of memory that a handler holds, only the copy made below counts.
      chunks.push(bytes);
      total += bytes.length;
    }
    const whole = new Uint8Array(total);
    let at = 0;
    for (const bytes of chunks) {
      whole.set(bytes, at);
      at += bytes.length;
    }
    return whole;
  }

  const fileOf = new WeakMap();
  class File extends Blob {
    constructor(parts, name, options = undefined) {
      if (made === undefined) needArguments(arguments.length, 2, 'new File');
      super(parts, options);
      const { lastModified } = toDictionary(options, 'new File');
      fileOf.set(this, {
        name: toUsvString(name),
        lastModified: lastModified === undefined ? Date.now() : Math.trunc(Number(lastModified)) || 0,
      });
    }
    get name() { return fileState(this).name; }
    get lastModified() { return fileState(this).lastModified; }
    get webkitRelativePath() {
      fileState(this);
      return '';
    }
  }
  function fileState(file) {
    const state = fileOf.get(file);
    if (state === undefined) throw illegalInvocation();
    return state;
  }
  internals.interface(File);

  /** A Blob over bytes that nobody else writes to. */
  function blobOf(bytes, type) {
    made = { bytes, type };
    return new Blob();
  }
  function fileWith(bytes, type, name, lastModified) {
    made = { bytes, type };
    return new File([], name, { lastModified });
  }
  internals.blobOf = blobOf;
  internals.blobState = stateOf;

  let entriesOf;
  class FormData {
    #entries = [];
    static {
      entriesOf = (form) => {
        if (typeof form !== 'object' || form === null || !(#entries in form)) throw illegalInvocation();
        return form.#entries;
      };
      internals.isFormData = (value) => typeof value === 'object' && value !== null && #entries in value;
    }
    constructor(form = undefined) {
      if (form !== undefined) throw new TypeError("Failed to construct 'FormData': parameter 1 is not of type 'HTMLFormElement'.");
    }
    append(name, value, filename = undefined) {
      const entries = entriesOf(this);
      needArguments(arguments.length, 2, "append' on 'FormData");
      entries.push([toUsvString(name), toEntry(value, filename, arguments.length, 'append')]);
    }
    delete(name) {
      const entries = entriesOf(this);
      needArguments(arguments.length, 1, "delete' on 'FormData");
      const wanted = toUsvString(name);
      this.#entries = entries.filter(([one]) => one !== wanted);
    }
    get(name) {
      const entries = entriesOf(this);
      needArguments(arguments.length, 1, "get' on 'FormData");
      const wanted = toUsvString(name);
      return entries.find(([one]) => one === wanted)?.[1] ?? null;
    }
    getAll(name) {
      const entries = entriesOf(this);
      needArguments(arguments.length, 1, "getAll' on 'FormData");
      const wanted = toUsvString(name);
      return entries.filter(([one]) => one === wanted).map(([, value]) => value);
    }
    has(name) {
      const entries = entriesOf(this);
      needArguments(arguments.length, 1, "has' on 'FormData");
      const wanted = toUsvString(name);
      return entries.some(([one]) => one === wanted);
    }
    set(name, value, filename = undefined) {
      const entries = entriesOf(this);
      needArguments(arguments.length, 2, "set' on 'FormData");
      const wanted = toUsvString(name);
      const pair = [wanted, toEntry(value, filename, arguments.length, 'set')];
      const first = entries.findIndex(([one]) => one === wanted);
      if (first < 0) {
        entries.push(pair);
        return;
      }
      this.#entries = entries.filter(([one], index) => index <= first || one !== wanted);
      this.#entries[first] = pair;
    }
    forEach(callback, self = undefined) {
      entriesOf(this);
      needArguments(arguments.length, 1, "forEach' on 'FormData");
      if (typeof callback !== 'function') {
        throw new TypeError("Failed to execute 'forEach' on 'FormData': parameter 1 is not of type 'Function'.");
      }
      for (let index = 0; index < this.#entries.length; index++) {
        const [name, value] = this.#entries[index];
        callback.call(self, value, name, this);
      }
    }
    entries() {
      entriesOf(this);
      return iterate(() => this.#entries, 'entries');
    }
    keys() {
      entriesOf(this);
      return iterate(() => this.#entries, 'keys');
    }
    values() {
      entriesOf(this);
      return iterate(() => this.#entries, 'values');
    }
  }
  const iterate = internals.pairIterator('FormData');
  internals.interface(FormData);
  Object.defineProperty(FormData.prototype, Symbol.iterator, {
    value: FormData.prototype.entries, writable: true, configurable: true,
  });

  function toEntry(value, filename, given, what) {
    if (!isBlob(value)) {
      if (given > 2) {
        throw new TypeError(`Failed to execute '${what}' on 'FormData': parameter 2 is not of type 'Blob'.`);
      }
      return toUsvString(value);
    }
    const { bytes, type } = stateOf(value);
    const file = fileOf.get(value);
    if (file !== undefined && filename === undefined) return value;
    return fileWith(bytes, type, filename === undefined ? 'blob' : toUsvString(filename), file?.lastModified);
  }

  /** The multipart form of a FormData: [content type, bytes]. */
  internals.encodeForm = (form) => {
    const texts = [];
    const contents = [];
    for (const [name, value] of entriesOf(form)) {
      const isText = typeof value === 'string';
      texts.push(name, isText ? value : fileState(value).name, isText ? '' : stateOf(value).type || 'application/octet-stream');
      contents.push(isText ? null : stateOf(value).bytes);
    }
    const [boundary, bytes] = native.encodeMultipart(texts, contents);
    return [`multipart/form-data; boundary=${boundary}`, new Uint8Array(bytes)];
  };

  /** The FormData of a body with the content type `type`. */
  internals.parseForm = (bytes, type) => {
    const [essence, boundary] = native.formType(type ?? '');
    const form = new FormData();
    const entries = entriesOf(form);
    if (essence === 'application/x-www-form-urlencoded') {
      internals.load('url');
      for (const pair of internals.urlPairs(utf8Decode(bytes, true))) entries.push(pair);
      return form;
    }
    if (essence !== 'multipart/form-data') {
      throw new TypeError(
        'Unrecognized Content-Type header value. FormData can only parse the following MIME types: multipart/form-data, application/x-www-form-urlencoded.',
      );
    }
    if (boundary === null || boundary === undefined) {
      throw new TypeError('No boundary string in Content-Type header. The multipart/form-data MIME type requires a boundary parameter, e.g. \'Content-Type: multipart/form-data; boundary="abcd"\'.');
    }
    const [texts, offsets] = native.parseMultipart(bytes, boundary);
    for (let index = 0; index < offsets.length / 2; index++) {
      const [name, filename, partType] = texts.slice(index * 3, index * 3 + 3);
      const content = bytes.subarray(offsets[index * 2], offsets[index * 2 + 1]);
      const isFile = filename !== null && filename !== undefined;
      entries.push([name, isFile ? fileWith(content, normalizeType(partType), filename, undefined) : utf8Decode(content, true)]);
    }
    return form;
  };

  Object.assign(internals, { Blob, File, FormData });
  return { Blob, File, FormData };
}
