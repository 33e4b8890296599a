// Checks which texts can name a thing in a path, so that clients can address it. URL parsers treat
// `.` and `..` as steps of the path, even percent-encoded; control characters do not pass proxies;
// half a surrogate pair has no percent-encoding.

const CONTROL = /\p{Cc}/u;

/** Error detail for a name that no path can hold. */
export const NOT_ADDRESSABLE = 'must be a text that a path can name: other than . and .., without control characters';

/** Returns true when the text can be one segment of a path. */
export function isAddressable(text: string): boolean {
  return text !== '.' && text !== '..' && text.isWellFormed() && !CONTROL.test(text);
}
