// What `emitDecoratorMetadata` writes: something only where a library such as reflect-metadata is there to take it.
export default function decorateMetadata(key, value) {
  if (typeof Reflect === "object" && typeof Reflect.metadata === "function") return Reflect.metadata(key, value);
}
