// `node:stream/promises`.
import { provide } from 'node:internal/base';
import { promises } from 'node:stream';

export const { finished, pipeline } = promises;
export { promises };
export default provide('node:stream/promises', promises);
