// Which texts can name a thing in a path. In: a name that a request brings. Out: whether a client can ever address the thing by it.
// URL parsers take `.` and `..` for steps in the path, percent-encoded too; control characters do not pass proxies; half a
// surrogate pair has no percent-encoding.

const CONTROL = /\p{Cc}/u;

/** What a refusal of such a name says. */
export const NOT_ADDRESSABLE = 'takes a text that a path can name: other than . and .., without control characters';

/** Returns whether the text can be one segment of a path. */
export function isAddressable(text: string): boolean {
  return text !== '.' && text !== '..' && text.isWellFormed() && !CONTROL.test(text);
}
