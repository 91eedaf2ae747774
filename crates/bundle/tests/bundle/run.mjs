// Runs a package as an engine does: names of modules are what imports say. Prints what the entry's `run` answers.
import fs from "node:fs";
import vm from "node:vm";
const { entry, modules } = JSON.parse(fs.readFileSync(0, "utf8"));
const known = new Map();
async function value(text) {
  return new vm.SyntheticModule(["default"], function () { this.setExport("default", text); });
}
async function load(name) {
  if (known.has(name)) return known.get(name);
  let module;
  if (name.startsWith("node:")) {
    const found = await import(name);
    module = new vm.SyntheticModule(Object.keys(found), function () {
      for (const key of Object.keys(found)) this.setExport(key, found[key]);
    });
  } else {
    const { kind, source } = modules[name] ?? (() => { throw new Error(`no module ${name}`); })();
    if (kind === "esm") {
      const options = { identifier: name, importModuleDynamically: async (specifier) => ready(await load(specifier)) };
      module = new vm.SourceTextModule(source, options);
    } else if (kind === "json") module = await value(JSON.parse(source));
    else module = await value(source);
  }
  known.set(name, module);
  return module;
}
async function ready(module) {
  if (module.status === "unlinked") await module.link((specifier) => load(specifier));
  await module.evaluate();
  return module;
}
const main = await ready(await load(entry));
console.log(JSON.stringify(await main.namespace.default.run()));
