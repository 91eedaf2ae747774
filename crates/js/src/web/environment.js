// navigator, atob and btoa. The engine has base64 of its own; here it gets the checks of the standard.
export default function (native, internals) {
  const { engine, needArguments, illegalInvocation } = internals;
  let isMade = false;

  class Navigator {
    #brand;
    constructor() {
      if (isMade) throw new TypeError('Illegal constructor');
      isMade = true;
    }
    // Libraries tell Workers from browsers by this very name.
    get userAgent() { return Navigator.#check(this, 'Cloudflare-Workers'); }
    get language() { return Navigator.#check(this, 'en'); }
    get hardwareConcurrency() { return Navigator.#check(this, 1); }
    static #check(self, value) {
      if (typeof self !== 'object' || self === null || !(#brand in self)) throw illegalInvocation();
      return value;
    }
  }
  internals.interface(Navigator);

  const encode = {
    btoa(data) {
      needArguments(arguments.length, 1, 'btoa');
      return engine.btoa(`${data}`);
    },
    atob(data) {
      needArguments(arguments.length, 1, 'atob');
      return engine.atob(`${data}`);
    },
  };
  return { Navigator, navigator: new Navigator(), ...encode };
}
