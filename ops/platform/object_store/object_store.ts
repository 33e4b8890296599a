// Stores cold data in a folder (file://) or a bucket (s3://), behind one interface of streams.
// Guarantees: an object exists whole or not at all, whenever its writer dies. A failure says what
// it is (missing, refused, unavailable) and which object it concerns.

/**
 * missing: there is no such object. refused: a retry will not help (no permission, no bucket, a
 * full disk). unavailable: a retry may help.
 */
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

/**
 * Keys are paths with /, without one at either end. Every method rejects with ObjectStoreError, or
 * with the signal's reason.
 */
export interface ObjectStore {
  /** Location of the store without secrets, for messages. */
  readonly place: string;
  /**
   * Writes an object. A present object stays until all of the new one is written. A stream that
   * fails writes nothing.
   */
  put(key: string, content: AsyncIterable<Uint8Array>, signal: AbortSignal): Promise<void>;
  /** Reads an object, or its bytes from `from` up to but not including `until`. */
  get(key: string, signal: AbortSignal, range?: { from: number; until: number }): AsyncIterable<Uint8Array>;
  /** Returns the facts of an object; null when it does not exist. */
  stat(key: string, signal: AbortSignal): Promise<StoredObject | null>;
  /** Deletes an object. Deleting one that does not exist succeeds. */
  delete(key: string, signal: AbortSignal): Promise<void>;
  /** Lists the objects whose key begins with `prefix`, in no order. */
  list(prefix: string, signal: AbortSignal): AsyncIterable<StoredObject>;
  close(): void;
}
