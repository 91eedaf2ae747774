// What `experimentalDecorators` means in TypeScript: decorators run from the last to the first. Of a class they may
// replace the class, of a method or an accessor the property's descriptor; of a field they only look.
export default function decorate(decorators, target, key, descriptor) {
  const isClass = arguments.length < 3;
  const isField = arguments.length === 4 && descriptor === undefined;
  if (!isClass && descriptor === null) descriptor = Object.getOwnPropertyDescriptor(target, key);
  if (typeof Reflect === "object" && typeof Reflect.decorate === "function") {
    const decorated = isClass ? Reflect.decorate(decorators, target) : Reflect.decorate(decorators, target, key, descriptor);
    if (!isClass && decorated) Object.defineProperty(target, key, decorated);
    return decorated;
  }
  let result = isClass ? target : descriptor;
  for (let index = decorators.length - 1; index >= 0; index--) {
    const decorator = decorators[index];
    if (!decorator) continue;
    const replaced = isClass ? decorator(result) : isField ? decorator(target, key) : decorator(target, key, result);
    if (replaced) result = replaced;
  }
  if (!isClass && result) Object.defineProperty(target, key, result);
  return result;
}
