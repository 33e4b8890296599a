// Cuts what is on its way into pieces of bounded size. In: items in an order, and what each weighs. Out: the same items in the same
// order. Pure.

export interface PieceBounds {
  count: number;
  bytes: number;
}

/** Pieces of at most so many items and bytes, and of at least one item: what is larger by itself stands alone. */
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
