// R2 buckets: what a handler gives is checked and written down here; what it means is decided by whoever keeps the objects.
export default function (native, internals) {
  const { bytesOf, needArguments, notYet, toDictionary } = internals;
  const { defineProperty } = Object;
  const KEY = internals;

  // What operations are made of, made by the first of them: it loads parts that an isolate may do without, and that must
  // not run before the globals are there.
  let parts;
  const operations = () => (parts ??= make());

  function make() {
    internals.load('body');
    internals.load('outgoing');

    const isHeaders = value => internals.isHeaders(value);
    const textOf = value => `${value}`.toWellFormed();
    const isGiven = value => value !== undefined && value !== null;

    function dateOf(value) {
      const ms = value instanceof Date ? value.getTime() : typeof value === 'number' ? value : NaN;
      if (Number.isNaN(ms)) throw new TypeError('The value cannot be converted because it is not a valid date.');
      return Math.trunc(ms);
    }

    // ---- Conditions.

    /** The etags of a list, as HTTP spells it: quoted, perhaps weak, between commas; or `*`. */
    function etagsOf(list) {
      const etags = [];
      let rest = list;
      for (let isFirst = true; ; isFirst = false) {
        const commas = /^[\s,]*/.exec(rest)[0];
        rest = rest.slice(commas.length);
        if (!/["*]/.test(rest)) return etags;
        if (!isFirst && !commas.includes(',')) throw new Error('Comma was expected to separate etags.');
        if (rest[0] === '*') return [{ type: 'wildcard' }];
        const etag = /^(W\/)?"([^"]*)"/.exec(rest);
        if (etag === null) {
          throw new Error(/^(W\/)?"/.test(rest) ? 'Unclosed double quote for Etag' : 'Weak etags must start with W/ and their value must be quoted');
        }
        etags.push({ type: etag[1] === undefined ? 'strong' : 'weak', value: etag[2].toWellFormed() });
        rest = rest.slice(etag[0].length);
      }
    }

    function etagOf(etag) {
      if (typeof etag !== 'string') throw new TypeError('An etag of a condition must be a string.');
      if (etag.startsWith('"') && etag.endsWith('"')) {
        throw new TypeError(`Conditional ETag should not be wrapped in quotes (${etag}).`);
      }
      return [etag === '*' ? { type: 'wildcard' } : { type: 'strong', value: etag.toWellFormed() }];
    }

    function conditionOf(given) {
      if (!isGiven(given)) return undefined;
      if (isHeaders(given)) {
        const field = name => internals.headerOf(given, name);
        // A date that cannot be read is as good as none.
        const date = name => {
          const ms = Date.parse(field(name));
          return Number.isNaN(ms) ? undefined : ms;
        };
        const [match, noneMatch] = [field('if-match'), field('if-none-match')];
        return {
          etagMatches: match === undefined ? undefined : etagsOf(match),
          etagDoesNotMatch: noneMatch === undefined ? undefined : etagsOf(noneMatch),
          uploadedAfter: date('if-modified-since'),
          uploadedBefore: date('if-unmodified-since'),
          secondsGranularity: true,
        };
      }
      const { etagMatches, etagDoesNotMatch, uploadedBefore, uploadedAfter, secondsGranularity } = toDictionary(given, 'onlyIf');
      return {
        etagMatches: isGiven(etagMatches) ? etagOf(etagMatches) : undefined,
        etagDoesNotMatch: isGiven(etagDoesNotMatch) ? etagOf(etagDoesNotMatch) : undefined,
        uploadedBefore: isGiven(uploadedBefore) ? dateOf(uploadedBefore) : undefined,
        uploadedAfter: isGiven(uploadedAfter) ? dateOf(uploadedAfter) : undefined,
        secondsGranularity: Boolean(secondsGranularity),
      };
    }

    // ---- Ranges.

    function wholeNumber(value, what, label) {
      if (!isGiven(value)) return undefined;
      const number = Number(value);
      if (!(number >= 0)) throw new RangeError(`Invalid ${label}. ${what} (${number}) must be greater than or equal to 0.`);
      if (number % 1 !== 0 && number !== Infinity) {
        throw new RangeError(`Invalid range. ${what} (${number}) must be an integer, not floating point.`);
      }
      return Math.min(number, Number.MAX_SAFE_INTEGER);
    }

    function rangeOf(given) {
      if (!isGiven(given)) return {};
      if (isHeaders(given)) return { rangeHeader: internals.headerOf(given, 'range') };
      const { offset, length, suffix } = toDictionary(given, 'range');
      if (isGiven(suffix)) {
        if (isGiven(offset)) throw new TypeError('Suffix is incompatible with offset.');
        if (isGiven(length)) throw new TypeError('Suffix is incompatible with length.');
      }
      return { range: {
        offset: wholeNumber(offset, 'Starting offset', 'range'),
        length: wholeNumber(length, 'Length', 'range'),
        suffix: wholeNumber(suffix, 'Suffix', 'suffix'),
      } };
    }

    // ---- Metadata and checksums.

    const FIELDS = {
      contentType: 'content-type',
      contentLanguage: 'content-language',
      contentDisposition: 'content-disposition',
      contentEncoding: 'content-encoding',
      cacheControl: 'cache-control',
    };

    function httpMetadataOf(given) {
      if (!isGiven(given)) return undefined;
      const metadata = {};
      const fromHeaders = isHeaders(given);
      const source = fromHeaders ? given : toDictionary(given, 'httpMetadata');
      for (const name of Object.keys(FIELDS)) {
        const value = fromHeaders ? internals.headerOf(source, FIELDS[name]) : source[name];
        if (isGiven(value)) metadata[name] = textOf(value);
      }
      const expires = fromHeaders ? internals.headerOf(source, 'expires') : source.cacheExpiry;
      if (isGiven(expires)) metadata.cacheExpiry = dateOf(fromHeaders ? new Date(expires) : expires);
      return metadata;
    }

    function customMetadataOf(given) {
      if (!isGiven(given)) return undefined;
      const source = toDictionary(given, 'customMetadata');
      return Object.keys(source).map(name => [name.toWellFormed(), textOf(source[name])]);
    }

    const HASHES = { md5: ['MD5', 16], sha1: ['SHA-1', 20], sha256: ['SHA-256', 32], sha384: ['SHA-384', 48], sha512: ['SHA-512', 64] };

    const hexOf = bytes => Array.from(bytes, byte => byte.toString(16).padStart(2, '0')).join('');

    function checksumOf(options) {
      let checksum;
      for (const algorithm of Object.keys(HASHES)) {
        const given = options[algorithm];
        if (!isGiven(given)) continue;
        if (checksum !== undefined) throw new TypeError('You cannot specify multiple hashing algorithms.');
        const [name, length] = HASHES[algorithm];
        const bytes = bytesOf(given);
        if (bytes !== undefined) {
          if (bytes.length !== length) throw new TypeError(`${name} is ${length} bytes, not ${bytes.length}`);
          checksum = { algorithm, value: hexOf(bytes) };
          continue;
        }
        if (typeof given !== 'string') throw new TypeError(`${name} must be a string or bytes.`);
        if (given.length !== 2 * length) throw new TypeError(`${name} is ${2 * length} hex characters, not ${given.length}`);
        if (!/^[0-9a-f]+$/i.test(given)) throw new TypeError(`Provided ${name} wasn't a valid hex string`);
        checksum = { algorithm, value: given.toLowerCase() };
      }
      return checksum;
    }

    // ---- Objects.

    const show = (object, name, value) => defineProperty(object, name, { value, enumerable: true, configurable: true });

    class Checksums {
      constructor(key, checksums) {
        if (key !== KEY) throw new TypeError('Illegal constructor');
        for (const name of Object.keys(HASHES)) {
          const hex = checksums[name];
          const bytes = hex === undefined ? undefined : Uint8Array.from(hex.match(/../g), byte => parseInt(byte, 16)).buffer;
          show(this, name, bytes);
        }
      }
      toJSON() {
        const hex = {};
        for (const name of Object.keys(HASHES)) {
          if (this[name] !== undefined) hex[name] = hexOf(new Uint8Array(this[name]));
        }
        return hex;
      }
    }

    function shownHttp(given) {
      const metadata = {};
      for (const name of Object.keys(FIELDS)) {
        if (given[name] !== undefined) metadata[name] = given[name];
      }
      if (given.cacheExpiry !== undefined) metadata.cacheExpiry = new Date(given.cacheExpiry);
      return metadata;
    }

    // The names of the classes are those that workerd's have.
    class HeadResult {
      constructor(key, { key: name, version, size, etag, checksums, uploaded, httpMetadata, customMetadata, range, storageClass }) {
        if (key !== KEY) throw new TypeError('Illegal constructor');
        const values = {
          key: name, version, size, etag, httpEtag: `"${etag}"`, checksums: new Checksums(KEY, checksums),
          uploaded: new Date(uploaded),
          httpMetadata: httpMetadata && shownHttp(httpMetadata),
          customMetadata: customMetadata && Object.fromEntries(customMetadata),
          range: range && { offset: range.offset, length: range.length },
          storageClass, ssecKeyMd5: undefined,
        };
        for (const property of Object.keys(values)) show(this, property, values[property]);
      }
      writeHttpMetadata(headers) {
        needArguments(arguments.length, 1, "writeHttpMetadata' on 'R2Object");
        if (!isHeaders(headers)) {
          throw new TypeError("Failed to execute 'writeHttpMetadata' on 'R2Object': parameter 1 is not of type 'Headers'.");
        }
        const { httpMetadata } = this;
        if (httpMetadata === undefined) {
          throw new TypeError(`HTTP metadata unknown for key \`${this.key}\`. Did you forget to add 'httpMetadata' to \`include\` when listing?`);
        }
        for (const name of Object.keys(FIELDS)) {
          if (httpMetadata[name] !== undefined) headers.set(FIELDS[name], httpMetadata[name]);
        }
        if (httpMetadata.cacheExpiry !== undefined) headers.set('expires', httpMetadata.cacheExpiry.toUTCString());
      }
    }

    let partsOf;
    class GetResult extends HeadResult {
      #parts;
      constructor(key, object, body) {
        super(key, object);
        const type = object.httpMetadata.contentType;
        this.#parts = { body, headers: internals.headersOf(type === undefined ? [] : ['content-type', type], true) };
      }
      static {
        partsOf = object => {
          if (!(typeof object === 'object' && object !== null && #parts in object)) throw internals.illegalInvocation();
          return object.#parts;
        };
      }
    }
    internals.mixBody(GetResult, object => partsOf(object));
    delete GetResult.prototype.formData;
    // Its constructor is told what no handler may have: it calls nothing that a handler could put above it.
    Object.preventExtensions(GetResult);
    for (const Class of [Checksums, HeadResult, GetResult]) {
      defineProperty(Class.prototype, Symbol.toStringTag, { value: Class.name, configurable: true });
    }

    const headOf = object => (object === null ? null : new HeadResult(KEY, object));

    function bodyOf(body, length) {
      if (typeof body !== 'number') return internals.bodyOfBytes(body ?? new Uint8Array(0));
      return internals.bodyOfSource({ ...internals.incomingSource(body), length });
    }

    // ---- Requests.

    async function ask(bucket, request, content = null, ended = undefined) {
      const op = native.ask(bucket, JSON.stringify(request), internals.sendBody(content, ended));
      const { head, body } = await internals.wait(op);
      return { answer: JSON.parse(head), body };
    }

    const streams = () => {
      internals.load('streams');
      return internals.streams;
    };
    const isStream = value => internals.streams !== undefined && internals.streams.isReadableStream(value);

    /** What a value is sent as, and how long it is; `method` is what it was given to, as its second argument. */
    function contentOf(value, method) {
      if (!isGiven(value)) return { content: null, length: 0 };
      if (typeof value === 'string') {
        internals.load('encoding');
        const content = internals.utf8Encode(value);
        return { content, length: content.length };
      }
      if (isStream(value)) {
        const { isLocked, isDisturbed, promisedLength, reader } = streams();
        const length = promisedLength(value);
        if (length === undefined) {
          throw new TypeError('Provided readable stream must have a known length (request/response body or readable half of FixedLengthStream)');
        }
        if (isLocked(value)) throw new TypeError('This ReadableStream is currently locked to a reader.');
        if (isDisturbed(value)) throw new TypeError('This ReadableStream is disturbed (has already been read from), and cannot be used as a body.');
        const { read, cancel } = reader(value);
        return { content: { read, cancel, length }, length };
      }
      const content = bytesOf(value) ?? (internals.isBlob?.(value) ? internals.blobState(value).bytes : undefined);
      if (content === undefined) {
        throw new TypeError(`Failed to execute '${method}': parameter 2 is not of type 'ReadableStream or ArrayBuffer or ArrayBufferView or string or Blob'.`);
      }
      return { content, length: content.length };
    }

    function metadataOf(options) {
      if (isGiven(options.ssecKey)) throw notYet('ssecKey of an R2 bucket');
      return {
        httpMetadata: httpMetadataOf(options.httpMetadata),
        customMetadata: customMetadataOf(options.customMetadata),
        storageClass: isGiven(options.storageClass) ? textOf(options.storageClass) : undefined,
      };
    }

    const putRequest = (key, options) => ({
      method: 'put',
      key,
      ...metadataOf(options),
      onlyIf: conditionOf(options.onlyIf),
      checksum: checksumOf(options),
    });

    /** Sends a value with what `request` makes; gives the answer. `method` is what both were given to. */
    async function send(bucket, method, request, value) {
      let asked;
      let sent;
      try {
        asked = request();
        sent = contentOf(value, method);
      } catch (error) {
        if (isStream(value) && !streams().isLocked(value)) {
          const reason = new Error(`Stream cancelled because the associated ${method.split("'")[0]} operation encountered an error.`);
          void streams().cancel(value, reason).catch(() => {});
        }
        throw error;
      }
      let broken;
      try {
        const { answer } = await ask(bucket, { ...asked, length: sent.length }, sent.content, error => { broken = error; });
        return answer;
      } catch (error) {
        // What broke the body says more than that it broke.
        if (broken !== undefined && error.message.endsWith('(10013)')) throw broken;
        throw error;
      }
    }

    // ---- Multipart uploads.

    const PARTS_MAX = 10_000;

    function partNumberOf(value) {
      const number = Number(value) | 0;
      if (number < 1 || number > PARTS_MAX) {
        throw new TypeError(`Part number must be between 1 and ${PARTS_MAX} (inclusive). Actual value was: ${number}`);
      }
      return number;
    }

    function uploadedPartOf(value) {
      const { partNumber, etag } = toDictionary(value, 'uploadedParts');
      if (!isGiven(partNumber) || !isGiven(etag)) throw new TypeError('A part of a multipart upload has a partNumber and an etag.');
      return { partNumber: partNumberOf(partNumber), etag: textOf(etag) };
    }

    class R2MultipartUpload {
      #bucket;
      #named;
      constructor(key, bucket, named) {
        if (key !== KEY) throw new TypeError('Illegal constructor');
        this.#bucket = bucket;
        this.#named = named;
        show(this, 'key', named.key);
        show(this, 'uploadId', named.uploadId);
      }
      async uploadPart(partNumber, value, options = undefined) {
        const method = "uploadPart' on 'R2MultipartUpload";
        needArguments(arguments.length, 2, method);
        const named = this.#named;
        const request = () => {
          if (isGiven(toDictionary(options, method).ssecKey)) throw notYet('ssecKey of an R2 bucket');
          return { method: 'uploadPart', ...named, partNumber: partNumberOf(partNumber) };
        };
        const { partNumber: number, etag } = await send(this.#bucket, method, request, value);
        return { partNumber: number, etag };
      }
      async complete(uploadedParts) {
        needArguments(arguments.length, 1, "complete' on 'R2MultipartUpload");
        if (!Array.isArray(uploadedParts)) {
          throw new TypeError("Failed to execute 'complete' on 'R2MultipartUpload': parameter 1 is not of type 'Array'.");
        }
        const request = { method: 'completeMultipartUpload', ...this.#named, parts: uploadedParts.map(uploadedPartOf) };
        return headOf((await ask(this.#bucket, request)).answer.object);
      }
      async abort() {
        await ask(this.#bucket, { method: 'abortMultipartUpload', ...this.#named });
      }
    }
    defineProperty(R2MultipartUpload.prototype, Symbol.toStringTag, { value: 'R2MultipartUpload', configurable: true });

    const INCLUDES = ['httpMetadata', 'customMetadata'];

    function listRequest(options) {
      const text = name => {
        const value = options[name];
        if (!isGiven(value)) return undefined;
        if (typeof value !== 'string') throw new TypeError(`The option ${name} of a listing must be a string.`);
        return value.toWellFormed();
      };
      const include = isGiven(options.include) ? [...options.include] : [];
      for (const field of include) {
        if (!INCLUDES.includes(field)) throw new RangeError(`Unsupported include value ${field}`);
      }
      return {
        method: 'list',
        prefix: text('prefix'),
        cursor: text('cursor'),
        delimiter: text('delimiter'),
        startAfter: text('startAfter'),
        limit: isGiven(options.limit) ? Number(options.limit) | 0 : undefined,
        httpMetadata: include.includes('httpMetadata'),
        customMetadata: include.includes('customMetadata'),
      };
    }

    return {
      async head(bucket, key) {
        const { answer } = await ask(bucket, { method: 'head', key: textOf(key) });
        return headOf(answer.object);
      },
      async get(bucket, key, options) {
        if (isGiven(options.ssecKey)) throw notYet('ssecKey of an R2 bucket');
        const request = { method: 'get', key: textOf(key), onlyIf: conditionOf(options.onlyIf), ...rangeOf(options.range) };
        const { answer: { object, hasBody }, body } = await ask(bucket, request);
        if (object === null || !hasBody) return headOf(object);
        return new GetResult(KEY, object, bodyOf(body, object.range.length));
      },
      async put(bucket, key, value, options) {
        const name = textOf(key);
        return headOf((await send(bucket, "put' on 'R2Bucket", () => putRequest(name, options), value)).object);
      },
      async delete(bucket, keys) {
        await ask(bucket, { method: 'delete', keys: Array.isArray(keys) ? keys.map(textOf) : [textOf(keys)] });
      },
      async list(bucket, options) {
        const { objects, truncated, cursor, delimitedPrefixes } = (await ask(bucket, listRequest(options))).answer;
        return { objects: objects.map(headOf), truncated, ...(cursor !== undefined && { cursor }), delimitedPrefixes };
      },
      async createMultipartUpload(bucket, key, options) {
        const request = { method: 'createMultipartUpload', key: textOf(key), ...metadataOf(options) };
        const { uploadId } = (await ask(bucket, request)).answer;
        return new R2MultipartUpload(KEY, bucket, { key: request.key, uploadId });
      },
      resumeMultipartUpload: (bucket, key, uploadId) =>
        new R2MultipartUpload(KEY, bucket, { key: textOf(key), uploadId: textOf(uploadId) }),
    };
  }

  class R2Bucket {
    #name;
    constructor(key, name) {
      if (key !== KEY) throw new TypeError('Illegal constructor');
      this.#name = name;
    }
    async head(key) {
      needArguments(arguments.length, 1, "head' on 'R2Bucket");
      return await operations().head(this.#name, key);
    }
    async get(key, options = undefined) {
      needArguments(arguments.length, 1, "get' on 'R2Bucket");
      return await operations().get(this.#name, key, toDictionary(options, "get' on 'R2Bucket"));
    }
    async put(key, value, options = undefined) {
      needArguments(arguments.length, 2, "put' on 'R2Bucket");
      return await operations().put(this.#name, key, value, toDictionary(options, "put' on 'R2Bucket"));
    }
    async delete(keys) {
      needArguments(arguments.length, 1, "delete' on 'R2Bucket");
      await operations().delete(this.#name, keys);
    }
    async list(options = undefined) {
      return await operations().list(this.#name, toDictionary(options, "list' on 'R2Bucket"));
    }
    async createMultipartUpload(key, options = undefined) {
      const method = "createMultipartUpload' on 'R2Bucket";
      needArguments(arguments.length, 1, method);
      return await operations().createMultipartUpload(this.#name, key, toDictionary(options, method));
    }
    resumeMultipartUpload(key, uploadId) {
      needArguments(arguments.length, 2, "resumeMultipartUpload' on 'R2Bucket");
      return operations().resumeMultipartUpload(this.#name, key, uploadId);
    }
  }
  defineProperty(R2Bucket.prototype, Symbol.toStringTag, { value: 'R2Bucket', configurable: true });

  internals.makeR2Bucket = name => new R2Bucket(KEY, name);
}
