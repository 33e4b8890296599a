// Stores objects in a bucket of S3 or of a compatible server. Uploads go in parts, of which a few
// are in memory at a time; an object appears once its upload is complete.
import { Readable } from 'node:stream';
import {
  DeleteObjectCommand,
  GetObjectCommand,
  HeadObjectCommand,
  ListObjectsV2Command,
  S3Client,
  S3ServiceException,
} from '@aws-sdk/client-s3';
import { Upload } from '@aws-sdk/lib-storage';
import { type ObjectFailure, type ObjectStore, ObjectStoreError, type StoredObject } from './object_store.ts';

/** Size of a part. An upload has at most 10,000 parts, so an object has at most 80 GiB. */
const PART_BYTES = 8 * 1024 * 1024;
const PARTS_AT_ONCE = 2;
/** Maximum attempts of a request, with growing pauses, before it counts as unavailable. */
const TRIES_MAX = 4;
const CONNECT_MS_MAX = 5000;
const SILENT_MS_MAX = 60_000;

export interface S3Options {
  bucket: string;
  /** Prefix of every key; empty for none. */
  prefix: string;
  endpoint: string | undefined;
  region: string;
  credentials: { accessKeyId: string; secretAccessKey: string } | undefined;
}

export class S3Store implements ObjectStore {
  readonly place: string;
  readonly #client: S3Client;
  readonly #bucket: string;
  readonly #prefix: string;

  constructor({ bucket, prefix, endpoint, region, credentials }: S3Options) {
    this.#bucket = bucket;
    this.#prefix = prefix === '' ? '' : `${prefix}/`;
    this.place = `s3://${bucket}${prefix === '' ? '' : `/${prefix}`}`;
    this.#client = new S3Client({
      region,
      maxAttempts: TRIES_MAX,
      requestHandler: { connectionTimeout: CONNECT_MS_MAX, requestTimeout: SILENT_MS_MAX, throwOnRequestTimeout: true },
      // Servers other than Amazon's do not support checksums in trailers; written objects are read
      // back and compared anyway.
      requestChecksumCalculation: 'WHEN_REQUIRED',
      responseChecksumValidation: 'WHEN_REQUIRED',
      ...(endpoint === undefined ? {} : { endpoint, forcePathStyle: true }),
      ...(credentials === undefined ? {} : { credentials }),
    });
  }

  async put(key: string, content: AsyncIterable<Uint8Array>, signal: AbortSignal): Promise<void> {
    // An error of the content is the caller's own, and must not be mistaken for a failure of the
    // bucket.
    const own: { failure: Error | null } = { failure: null };
    const watched = async function* (): AsyncGenerator<Uint8Array> {
      try {
        for await (const chunk of content) {
          signal.throwIfAborted();
          yield chunk;
        }
      } catch (error) {
        own.failure = error instanceof Error ? error : new Error(String(error));
        throw error;
      }
    };
    const upload = new Upload({
      client: this.#client,
      params: { Bucket: this.#bucket, Key: this.#prefix + key, Body: Readable.from(watched(), { objectMode: false }) },
      partSize: PART_BYTES,
      queueSize: PARTS_AT_ONCE,
    });
    const abort = (): void => void upload.abort();
    signal.addEventListener('abort', abort, { once: true });
    try {
      await upload.done();
    } catch (error) {
      signal.throwIfAborted();
      if (own.failure !== null) throw own.failure;
      throw failureOf(error, `${key} cannot be written to ${this.place}`);
    } finally {
      signal.removeEventListener('abort', abort);
    }
  }

  async *get(key: string, signal: AbortSignal, range?: { from: number; until: number }): AsyncIterable<Uint8Array> {
    try {
      const { Body } = await this.#client.send(
        new GetObjectCommand({
          Bucket: this.#bucket,
          Key: this.#prefix + key,
          ...(range === undefined ? {} : { Range: `bytes=${range.from}-${range.until - 1}` }),
        }),
        { abortSignal: signal },
      );
      if (!(Body instanceof Readable)) throw new Error('the answer has no body');
      for await (const chunk of Body) yield chunk as Buffer;
    } catch (error) {
      signal.throwIfAborted();
      throw failureOf(error, `${key} cannot be read from ${this.place}`);
    }
  }

  async stat(key: string, signal: AbortSignal): Promise<StoredObject | null> {
    try {
      const { ContentLength } = await this.#client.send(
        new HeadObjectCommand({ Bucket: this.#bucket, Key: this.#prefix + key }),
        {
          abortSignal: signal,
        },
      );
      return { key, bytes: ContentLength ?? 0 };
    } catch (error) {
      signal.throwIfAborted();
      const failure = failureOf(error, `${key} cannot be found in ${this.place}`);
      if (failure.failure === 'missing') return null;
      throw failure;
    }
  }

  async delete(key: string, signal: AbortSignal): Promise<void> {
    try {
      await this.#client.send(new DeleteObjectCommand({ Bucket: this.#bucket, Key: this.#prefix + key }), {
        abortSignal: signal,
      });
    } catch (error) {
      signal.throwIfAborted();
      const failure = failureOf(error, `${key} cannot be deleted from ${this.place}`);
      if (failure.failure !== 'missing') throw failure;
    }
  }

  async *list(prefix: string, signal: AbortSignal): AsyncIterable<StoredObject> {
    let token: string | undefined;
    do {
      let page;
      try {
        page = await this.#client.send(
          new ListObjectsV2Command({
            Bucket: this.#bucket,
            Prefix: this.#prefix + prefix,
            ...(token === undefined ? {} : { ContinuationToken: token }),
          }),
          { abortSignal: signal },
        );
      } catch (error) {
        signal.throwIfAborted();
        throw failureOf(error, `${prefix} cannot be listed in ${this.place}`);
      }
      for (const { Key, Size } of page.Contents ?? [])
        if (Key !== undefined) yield { key: Key.slice(this.#prefix.length), bytes: Size ?? 0 };
      token = page.NextContinuationToken;
    } while (token !== undefined);
  }

  close(): void {
    this.#client.destroy();
  }
}

function failureOf(error: unknown, what: string): ObjectStoreError {
  if (error instanceof ObjectStoreError) return error;
  const status = error instanceof S3ServiceException ? (error.$metadata.httpStatusCode ?? 0) : 0;
  const name = error instanceof Error ? error.name : '';
  const reason = reasonOf(error, status);
  // A missing bucket also answers 404, but is no missing object.
  if (name === 'NoSuchKey' || name === 'NotFound')
    return new ObjectStoreError('missing', `${what}: there is no such object`, error);
  const failure: ObjectFailure =
    (status >= 400 && status < 500 && status !== 408 && status !== 429) || isUnsigned(name) ? 'refused' : 'unavailable';
  return new ObjectStoreError(failure, `${what}: ${reason}`, error);
}

/** The SDK found no credentials to sign requests with. */
const isUnsigned = (name: string): boolean => name === 'CredentialsProviderError';

function reasonOf(error: unknown, status: number): string {
  if (!(error instanceof Error)) return String(error);
  const said =
    error.message === '' || error.message === 'UnknownError' ? error.name : `${error.name}: ${error.message}`;
  return status === 0 ? said : `${said} (status ${status})`;
}
