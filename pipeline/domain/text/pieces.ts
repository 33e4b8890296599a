// Cuts a sequence into pieces of bounded size. In: items in order, and the weight of each. Out: the
// same items in the same order. Pure.

export interface PieceBounds {
  count: number;
  bytes: number;
}

/**
 * Yields pieces within the bounds of items and bytes, each with at least one item: an item above
 * the bound is a piece of its own.
 */
export function* pieces<T>(items: Iterable<T>, bytesOf: (item: T) => number, max: PieceBounds): Generator<T[]> {
  let [piece, bytes]: [T[], number] = [[], 0];
  for (const item of items) {
    const size = bytesOf(item);
    if (piece.length === max.count || (piece.length > 0 && bytes + size > max.bytes)) {
      yield piece;
      [piece, bytes] = [[], 0];
    }
    piece.push(item);
    bytes += size;
  }
  if (piece.length > 0) yield piece;
}
