// Joins class names and leaves out those that do not apply.

/** Returns the given class names as one attribute value. */
export function cx(...names: readonly (string | false | null | undefined)[]): string {
  return names.filter((name) => typeof name === 'string' && name !== '').join(' ');
}
