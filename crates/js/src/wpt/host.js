// What a test of the suite finds around it besides the isolate's own globals: where it is, the files beside it by
// `fetch`, and a collector of garbage. `outcome` gets what the harness reports.
((test, readFile, collect) => {
  globalThis.GLOBAL = { isWindow: () => false, isWorker: () => true, isShadowRealm: () => false };
  globalThis.location = { href: `https://web-platform.test/${test}`, pathname: `/${test}`, search: '', hash: '' };
  globalThis.gc = collect;
  globalThis.fetch = async file => {
    const text = readFile(file);
    return { ok: true, status: 200, text: async () => text, json: async () => JSON.parse(text) };
  };
})
