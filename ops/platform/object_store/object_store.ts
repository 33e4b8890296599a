// Where cold data lies: a folder (file://) or a bucket (s3://), as one interface of streams.
// Guarantees: an object is there whole or not at all, whenever the writer dies; a failure says what it is (missing, refused,
// unavailable) and which object it met.

/** missing: no such object. refused: asking again will not help (no right, no bucket, a full disk). unavailable: it may. */
export type ObjectFailure = 'missing' | 'refused' | 'unavailable';

export class ObjectStoreError extends Error {
  readonly failure: ObjectFailure;

  constructor(failure: ObjectFailure, message: string, cause?: unknown) {
    super(message, { cause });
    this.name = 'ObjectStoreError';
    this.failure = failure;
  }
}

export interface StoredObject {
  key: string;
  bytes: number;
}

/** Keys are paths with /, without one at either end. Every method rejects with ObjectStoreError, or with the signal's reason. */
export interface ObjectStore {
  /** For messages: where the store is, without secrets. */
  readonly place: string;
  /** Writes an object, over one that is there; what was there stays until all of it is written. A stream that fails writes nothing. */
  put(key: string, content: AsyncIterable<Uint8Array>, signal: AbortSignal): Promise<void>;
  /** Reads an object, or its bytes from `from` up to and without `until`. */
  get(key: string, signal: AbortSignal, range?: { from: number; until: number }): AsyncIterable<Uint8Array>;
  /** null when there is no such object. */
  stat(key: string, signal: AbortSignal): Promise<StoredObject | null>;
  /** An object that is not there is no failure. */
  delete(key: string, signal: AbortSignal): Promise<void>;
  /** Objects whose key begins with `prefix`, in no order. */
  list(prefix: string, signal: AbortSignal): AsyncIterable<StoredObject>;
  close(): void;
}
