/** Of a text: at a place, so many characters go and others come. */
export interface Edit {
  at: number;
  remove: number;
  insert: string;
}

/** The text after an edit. What lies outside of the text is cut off. */
export function apply(text: string, { at, remove, insert }: Edit): string {
  return text.slice(0, at) + insert + text.slice(at + remove);
}

/** An edit, moved over an earlier one that its writer had not seen. */
export function over(edit: Edit, earlier: Edit): Edit {
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
