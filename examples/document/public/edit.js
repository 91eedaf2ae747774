// An edit of a text, for the page and for the object alike: at a place, so many characters go and others come.

/**
 * The text after an edit. What lies outside of the text is cut off.
 * @param {string} text
 * @param {{ at: number, remove: number, insert: string }} edit
 */
export function apply(text, { at, remove, insert }) {
  return text.slice(0, at) + insert + text.slice(at + remove);
}

/**
 * An edit, moved over an earlier one that its writer had not seen.
 * @param {{ at: number, remove: number, insert: string }} edit
 * @param {{ at: number, remove: number, insert: string }} earlier
 */
export function over(edit, earlier) {
  const end = edit.at + edit.remove;
  const earlierEnd = earlier.at + earlier.remove;
  const shift = earlier.insert.length - earlier.remove;
  if (edit.at >= earlierEnd) return { ...edit, at: edit.at + shift };
  if (end <= earlier.at) return edit;
  // Both remove some of the same. What came in the middle of what is removed goes with it.
  const after = Math.max(0, end - earlierEnd);
  if (edit.at >= earlier.at) return { ...edit, at: earlier.at + earlier.insert.length, remove: after };
  const before = earlier.at - edit.at;
  return { ...edit, remove: before + (after > 0 ? earlier.insert.length + after : 0) };
}

/**
 * What makes `to` out of `from`: all between their common beginning and their common end. No character is cut in two.
 * @param {string} from
 * @param {string} to
 */
export function difference(from, to) {
  const most = Math.min(from.length, to.length);
  let at = 0;
  while (at < most && from[at] === to[at]) at++;
  if (at > 0 && isFirstHalf(from, at - 1)) at--;
  let tail = 0;
  while (tail < most - at && from.at(-1 - tail) === to.at(-1 - tail)) tail++;
  if (tail > 0 && isFirstHalf(from, from.length - tail - 1)) tail--;
  if (tail > 0 && isFirstHalf(to, to.length - tail - 1)) tail--;
  return { at, remove: from.length - at - tail, insert: to.slice(at, to.length - tail) };
}

const isFirstHalf = (text, at) => at >= 0 && text.charCodeAt(at) >= 0xd800 && text.charCodeAt(at) <= 0xdbff;
