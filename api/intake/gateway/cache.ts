// Caches answers of models for callers that ask for it. Takes the key of a call; returns the answer
// that the same call of the organization got, from whichever process, across restarts. An answer is
// stored asynchronously, as one message of a stream whose bytes are bounded and whose oldest answers
// are deleted first. A NATS that does not answer within FIND_MS_MAX makes a miss.
import { hash } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { headers as natsHeaders } from '@nats-io/transport-node';
import type { ReportProblem } from '../../../ops/platform/report_problem.ts';
import type { Log } from '../../../ops/platform/nats/open_log.ts';
import type { GatewayTarget } from '../../../ops/platform/llm/routes.ts';
import { CACHE_ANSWER_BYTES_MAX, CACHE_SECONDS_MAX, CACHE_STREAM, cacheSubject } from '../../../schemas/streams.ts';
import { tokenOf } from '../../../schemas/records/webhook.ts';
import { ApiError } from '../../http/errors.ts';
import type { GatewayCall } from './call.ts';

const FIND_MS_MAX = 1000;
const STORE_MS_MAX = 5000;
/** Maximum answers that are being stored at a time; further ones are not cached. */
const STORING_MAX = 64;
const HEADER = 'X-Service-Cache';
const STORED_AT = 'Stored-At';
const SECONDS = 'Seconds';
const TYPE = 'Content-Type';
/** Headers of a request that change what a model answers. */
const KEY_HEADERS = ['anthropic-version', 'anthropic-beta', 'openai-beta'];

export interface CachedAnswer {
  content_type: string;
  body: Buffer;
}

/** Place of an answer in the cache. */
export interface CacheKey {
  subject: string;
  /** Maximum age of an answer, and how long a new one is kept. */
  seconds: number;
}

/**
 * Returns the place of a call's answer; null for a caller that does not ask for the cache.
 * @throws ApiError invalid_request
 */
export function cacheKeyOf(
  headers: IncomingHttpHeaders,
  {
    org_id,
    path,
    call,
    targets,
  }: { org_id: string; path: string; call: GatewayCall; targets: readonly GatewayTarget[] },
): CacheKey | null {
  const given = headers['x-service-cache'];
  if (given === undefined) return null;
  const seconds = typeof given === 'string' && /^\d{1,7}$/.test(given.trim()) ? Number(given) : 0;
  if (seconds < 1 || seconds > CACHE_SECONDS_MAX)
    throw new ApiError(
      'invalid_request',
      `${HEADER}: must be a whole number of seconds from 1 to ${CACHE_SECONDS_MAX}`,
    );
  const route = targets.map(({ base_url, model }) => `${base_url.href} ${model ?? ''}`).sort();
  const asked = JSON.stringify([path, route, KEY_HEADERS.map((name) => headers[name] ?? null)]);
  const digest = hash('sha256', Buffer.concat([Buffer.from(`${asked}\n`), call.raw]), 'hex');
  return { subject: cacheSubject(tokenOf(org_id), digest), seconds };
}

/** Gathers an answer on its way to the caller, up to the largest that is cached. */
export class AnswerKeeper {
  #chunks: Buffer[] = [];
  #bytes = 0;

  add(chunk: Buffer): void {
    this.#bytes += chunk.length;
    if (this.#bytes <= CACHE_ANSWER_BYTES_MAX) this.#chunks.push(chunk);
    else this.#chunks = [];
  }

  /** Returns the whole answer; null where it is too long. */
  answer(content_type: string): CachedAnswer | null {
    return this.#bytes > CACHE_ANSWER_BYTES_MAX ? null : { content_type, body: Buffer.concat(this.#chunks) };
  }
}

export class ResponseCache {
  readonly #log: Pick<Log, 'js' | 'jsm'>;
  readonly #now: () => number;
  readonly #onProblem: ReportProblem;
  #storing = 0;

  /** @param now milliseconds since the epoch */
  constructor(log: Pick<Log, 'js' | 'jsm'>, now: () => number, onProblem: ReportProblem) {
    this.#log = log;
    this.#now = now;
    this.#onProblem = onProblem;
  }

  /** Returns the cached answer; null where there is none that is young enough. */
  async find({ subject, seconds }: CacheKey): Promise<CachedAnswer | null> {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<null>((resolve) => (timer = setTimeout(resolve, FIND_MS_MAX, null)));
    try {
      const found = this.#log.jsm.direct.getMessage(CACHE_STREAM, { last_by_subj: subject });
      // An answer after the wait has ended, or an error, concerns nobody.
      found.catch(() => undefined);
      const message = await Promise.race([found, late]);
      if (message === null) return null;
      const head = message.header;
      const age = this.#now() - Number(head.get(STORED_AT));
      const lives = Math.min(seconds, Number(head.get(SECONDS))) * 1000;
      if (!(age < lives)) return null;
      return { content_type: head.get(TYPE), body: Buffer.from(message.data) };
    } catch (error) {
      this.#onProblem('the cache of answers could not be read', error);
      return null;
    } finally {
      clearTimeout(timer);
    }
  }

  /** Stores an answer, unless it is too long or too many are being stored. */
  put({ subject, seconds }: CacheKey, { content_type, body }: CachedAnswer): void {
    if (body.length > CACHE_ANSWER_BYTES_MAX || this.#storing >= STORING_MAX) return;
    const head = natsHeaders();
    head.set(STORED_AT, String(this.#now()));
    head.set(SECONDS, String(seconds));
    head.set(TYPE, content_type);
    this.#storing++;
    this.#log.js
      .publish(subject, body, { headers: head, timeout: STORE_MS_MAX })
      .catch((error: unknown) => {
        this.#onProblem('an answer could not be cached', error);
      })
      .finally(() => this.#storing--);
  }
}
