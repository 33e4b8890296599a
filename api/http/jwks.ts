// The public keys of an identity provider, in memory and kept current by polling. Takes the URL of
// a JSON Web Key Set; returns the keys that match a token's header. A withdrawn key disappears
// within REFRESH_MS and one fetch; unknown key ids cause at most one fetch in UNKNOWN_KEY_REST_MS;
// one fetch runs at a time, bounded in time and bytes; while the provider is away the last set
// stays in use.
import { createLocalJWKSet, type CryptoKey, errors, type JWSHeaderParameters } from 'jose';
import { z } from 'zod';
import type { ReportProblem } from '../../ops/platform/report_problem.ts';
import { ApiError } from './errors.ts';

/** Milliseconds after which a set is fetched again. */
export const REFRESH_MS = 30_000;
/** The same after a failed fetch, with and without a previous set. */
export const RETRY_MS = 10_000;
export const FIRST_RETRY_MS = 2000;
/** Minimum milliseconds between a fetch and one caused by an unknown key id. */
export const UNKNOWN_KEY_REST_MS = 10_000;
/** Maximum milliseconds for the whole response. */
export const FETCH_MS_MAX = 5000;
export const SET_BYTES_MAX = 256 * 1024;
/** Maximum number of keys tried for a token whose header matches several. */
const CANDIDATES_MAX = 8;

const setShape = z.object({ keys: z.array(z.looseObject({ kty: z.string() })) });

type LocalSet = ReturnType<typeof createLocalJWKSet>;

export interface ProviderKeysOptions {
  url: string;
  fetch: typeof fetch;
  /** Called when the set has changed. */
  onChange: () => void;
  /** Called once for every outage, not for every failed fetch. */
  onProblem: ReportProblem;
}

export class ProviderKeys {
  readonly #options: ProviderKeysOptions;
  readonly #closed = new AbortController();
  #set: LocalSet | null = null;
  #text = '';
  #away: Error | null = null;
  #inFlight: Promise<void> | null = null;
  /** Start of the last fetch, milliseconds of performance.now(). */
  #fetchedAt = -Infinity;
  #timer: NodeJS.Timeout | undefined;

  /** Starts fetching at once, so that the first token finds the set. */
  constructor(options: ProviderKeysOptions) {
    this.#options = options;
    void this.#refresh();
  }

  /**
   * Returns the keys that match a token's header by key id, algorithm and use.
   * @throws ApiError upstream_unavailable until a set has been fetched; JWKSNoMatchingKey of jose
   * when none matches
   */
  async keysFor(header: JWSHeaderParameters): Promise<CryptoKey[]> {
    if (this.#set === null) await this.#refreshIfRested();
    try {
      return await this.#select(header);
    } catch (error) {
      if (!(error instanceof errors.JWKSNoMatchingKey)) throw error;
      await this.#refreshIfRested();
      return this.#select(header);
    }
  }

  close(): void {
    this.#closed.abort();
    clearTimeout(this.#timer);
  }

  async #select(header: JWSHeaderParameters): Promise<CryptoKey[]> {
    if (this.#set === null) {
      const cause = this.#away ?? undefined;
      throw new ApiError('upstream_unavailable', 'The keys of the identity provider cannot be fetched. Try again.', {
        cause,
      });
    }
    try {
      return [await this.#set(header)];
    } catch (error) {
      if (!(error instanceof errors.JWKSMultipleMatchingKeys)) throw error;
      const keys: CryptoKey[] = [];
      for await (const key of error) if (keys.push(key) === CANDIDATES_MAX) break;
      return keys;
    }
  }

  async #refreshIfRested(): Promise<void> {
    if (this.#inFlight !== null) await this.#inFlight;
    else if (performance.now() - this.#fetchedAt >= UNKNOWN_KEY_REST_MS) await this.#refresh();
  }

  /** Fetches the set and schedules the next fetch. Never throws. */
  async #refresh(): Promise<void> {
    clearTimeout(this.#timer);
    this.#fetchedAt = performance.now();
    this.#inFlight = this.#load();
    await this.#inFlight;
    this.#inFlight = null;
    if (this.#closed.signal.aborted) return;
    const wait = this.#away === null ? REFRESH_MS : this.#set === null ? FIRST_RETRY_MS : RETRY_MS;
    this.#timer = setTimeout(() => void this.#refresh(), wait).unref();
  }

  async #load(): Promise<void> {
    try {
      const text = await this.#fetchText();
      if (this.#set === null || text !== this.#text) {
        this.#set = createLocalJWKSet(setShape.parse(JSON.parse(text)));
        this.#text = text;
        this.#options.onChange();
      }
      this.#away = null;
    } catch (cause) {
      if (this.#closed.signal.aborted) return;
      const first = this.#away === null;
      this.#away = cause instanceof Error ? cause : new Error(String(cause));
      if (!first) return;
      const meanwhile =
        this.#set === null ? 'requests with tokens get 502 meanwhile' : 'the previous keys stay in use meanwhile';
      this.#options.onProblem(`the keys of the identity provider cannot be fetched; ${meanwhile}`, cause);
    }
  }

  async #fetchText(): Promise<string> {
    const late = new AbortController();
    const timer = setTimeout(() => {
      late.abort(new Error(`the key set did not arrive within ${FETCH_MS_MAX} ms`));
    }, FETCH_MS_MAX);
    try {
      const response = await this.#options.fetch(this.#options.url, {
        headers: { Accept: 'application/jwk-set+json, application/json' },
        // The operator has named the trusted URL; a redirect must not name another.
        redirect: 'error',
        signal: AbortSignal.any([late.signal, this.#closed.signal]),
      });
      if (response.status !== 200) {
        await response.body?.cancel();
        throw new Error(`the response to the key set request has status ${response.status}`);
      }
      return await boundedText(response);
    } finally {
      clearTimeout(timer);
    }
  }
}

async function boundedText(response: Response): Promise<string> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  const body: ReadableStream<Uint8Array> | null = response.body;
  for await (const chunk of body ?? []) {
    bytes += chunk.byteLength;
    // Leaving the loop early cancels the body.
    if (bytes > SET_BYTES_MAX) throw new Error(`the key set is larger than ${SET_BYTES_MAX} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}
