// TextEncoder and TextDecoder (Encoding Standard).
export default function (native, internals) {
  const { illegalInvocation, bytesOf, toDictionary, toUsvString } = internals;
  const EMPTY = new Uint8Array(0);

  internals.utf8Encode = (text) => native.encode(`${text}`.toWellFormed());
  internals.utf8Decode = (bytes, keepsMark = false) => native.decode('utf-8', false, keepsMark, bytes);

  class TextEncoder {
    #isEncoder = true;
    get encoding() {
      if (!isEncoder(this)) throw illegalInvocation();
      return 'utf-8';
    }
    encode(input = '') {
      if (!isEncoder(this)) throw illegalInvocation();
      return native.encode(toUsvString(input));
    }
    encodeInto(source, destination) {
      if (!isEncoder(this)) throw illegalInvocation();
      internals.needArguments(arguments.length, 2, "encodeInto' on 'TextEncoder");
      const text = toUsvString(source);
      if (!(destination instanceof Uint8Array)) {
        throw new TypeError("Failed to execute 'encodeInto' on 'TextEncoder': parameter 2 is not of type 'Uint8Array'.");
      }
      const [read, written] = native.encodeInto(text, destination);
      return { read, written };
    }
    static {
      isEncoder = (value) => typeof value === 'object' && value !== null && #isEncoder in value;
    }
  }
  var isEncoder;
  internals.interface(TextEncoder);

  let stateOf;
  class TextDecoder {
    #state;
    static {
      stateOf = (value) => {
        if (typeof value !== 'object' || value === null || !(#state in value)) throw illegalInvocation();
        return value.#state;
      };
    }
    constructor(label = 'utf-8', options = undefined) {
      const { fatal, ignoreBOM } = toDictionary(options, 'new TextDecoder');
      const name = native.encodingName(toUsvString(label));
      if (name === undefined || name === null) {
        throw new RangeError(`"${label}" is not a valid encoding.`);
      }
      // `decode` is the Rust decoder of a stream that has begun.
      this.#state = { name, isFatal: Boolean(fatal), keepsBom: Boolean(ignoreBOM), decode: undefined };
    }
    get encoding() { return stateOf(this).name; }
    get fatal() { return stateOf(this).isFatal; }
    get ignoreBOM() { return stateOf(this).keepsBom; }
    decode(input, options = undefined) {
      const state = stateOf(this);
      const bytes = input === undefined ? EMPTY : bytesOf(input);
      if (bytes === undefined) {
        throw new TypeError(
          "Failed to execute 'decode' on 'TextDecoder': parameter 1 is not of type 'ArrayBuffer or ArrayBufferView'.",
        );
      }
      const isLast = !toDictionary(options, "decode' on 'TextDecoder").stream;
      if (state.decode === undefined) {
        if (isLast) return native.decode(state.name, state.isFatal, state.keepsBom, bytes);
        state.decode = native.decoder(state.name, state.isFatal, state.keepsBom);
      }
      const { decode } = state;
      if (isLast) state.decode = undefined;
      return decode(bytes, isLast);
    }
  }
  internals.interface(TextDecoder);

  Object.assign(internals, { TextEncoder, TextDecoder });
  return { TextEncoder, TextDecoder };
}
