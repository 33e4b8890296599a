// Decides which texts are shown as Markdown. The parser's time grows with the square of the marks of emphasis in a
// paragraph, and the depth of its calls with the quotes and lists that a line opens, so a text beyond these bounds is shown
// as it is. Pure.

const CHARS_MAX = 200_000;
/** Quotes and list items that one line may open. */
const CONTAINERS_MAX = 30;
const OPENS_MANY = new RegExp(String.raw`^(?:[ \t]*(?:>|(?:[*+\-]|\d{1,9}[.)])[ \t])){${CONTAINERS_MAX}}`, 'm');
/** Columns by which a line may be indented: each level of a list takes two or more. */
const INDENT_MAX = 400;
const INDENTS_FAR = new RegExp(String.raw`^[ \t]{${INDENT_MAX}}`, 'm');
/** Runs of marks of emphasis in one paragraph. */
const EMPHASIS_MAX = 2000;
const PARAGRAPHS = /\n[ \t]*\n/;
const EMPHASIS = /[*_]+|~+/g;

/** Returns true if a text can be shown as Markdown without making the page wait. */
export function isRenderable(text: string): boolean {
  if (text.length > CHARS_MAX || OPENS_MANY.test(text) || INDENTS_FAR.test(text)) return false;
  return text.split(PARAGRAPHS).every((paragraph) => (paragraph.match(EMPHASIS)?.length ?? 0) <= EMPHASIS_MAX);
}
