// Cuts a snippet into pieces with and without a mark, so that it is shown as elements. Marks may come
// in any order, overlap or exceed the text: each character appears once. Pure.

export interface SnippetPart {
  text: string;
  marked: boolean;
}

/** Returns the pieces of a snippet; joined they are the snippet. */
export function snippetParts(text: string, marks: readonly (readonly number[])[]): SnippetPart[] {
  const parts: SnippetPart[] = [];
  let at = 0;
  const add = (end: number, marked: boolean): void => {
    if (end > at) parts.push({ text: text.slice(at, end), marked });
    at = Math.max(at, end);
  };
  for (const [from = 0, to = 0] of marks.toSorted(([a = 0], [b = 0]) => a - b)) {
    add(Math.min(from, text.length), false);
    add(Math.min(to, text.length), true);
  }
  add(text.length, false);
  return parts;
}
