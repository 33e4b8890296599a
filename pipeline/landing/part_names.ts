// Names of the engine's parts: partition, first and last block, level, and the last mutation if there
// was one. A mutation of a table renames every part of it and keeps the order of its rows, so parts
// that were read under one name may have another a second later. Pure.

/** Part of a table under its present name. */
export interface Part {
  name: string;
  rows: number;
}

/**
 * Returns what the name of a part keeps when it is mutated. With as many rows the part has the same
 * rows in the same places, because a mutation can only change and delete rows.
 */
export function contentOf(name: string): string {
  return name.split('_').slice(0, 4).join('_');
}

/**
 * Returns those of the given parts that are among the present ones with all of their rows, under
 * their present names.
 */
export function underPresentNames<P extends Part>(parts: readonly P[], present: readonly Part[]): P[] {
  const byContent = new Map(present.map((part) => [contentOf(part.name), part]));
  return parts.flatMap((part) => {
    const found = byContent.get(contentOf(part.name));
    return found?.rows === part.rows ? [{ ...part, name: found.name }] : [];
  });
}

/** Returns true if both lists have the same parts under the same names, in the same order. */
export function sameNames(a: readonly Part[], b: readonly Part[]): boolean {
  return a.length === b.length && a.every(({ name }, index) => name === b[index]?.name);
}
