// Register tokens, which an agent needs for its first registration. They are stored in KV by their
// SHA-256; the raw text is returned once and stored nowhere. A token is spent on one agent id by
// compare-and-swap before that agent is created: if the process dies in between, a repeated request
// with the same token for the same agent continues, and no second agent can result.
import { hash, randomBytes } from 'node:crypto';
import type { KV } from '@nats-io/kv';
import { z } from 'zod';
import { isLostWrite, waitAfterLostWrite } from '../../../ops/platform/nats/conflict.ts';
import { kvHeaders } from '../../../ops/platform/nats/kv_headers.ts';
import { BUCKETS } from '../../../schemas/buckets.ts';
import { orgKey } from '../../../schemas/records/org.ts';
import { ApiError } from '../../http/errors.ts';

const TOKEN_BYTES = 30;
const TOKEN_MS = 24 * 3_600_000;
/**
 * Maximum tokens of one organization that are kept, used ones included. Several processes that
 * create tokens at once may exceed it slightly.
 */
export const TOKENS_ORG_MAX = 5000;
const KEPT_MS = BUCKETS.register_tokens.ttlHours * 3_600_000;
/**
 * Attempts to spend a token against concurrent requests. The second read shows on which agent it
 * was spent.
 */
const CLAIM_TRIES_MAX = 3;

const tokenRecord = z.object({
  org_id: z.string(),
  created_at: z.iso.datetime(),
  expires_at: z.iso.datetime(),
  /** Agent on which the token was spent; null while it is unused. */
  agent_id: z.string().nullable(),
});
type TokenRecord = z.infer<typeof tokenRecord>;

/** Returns the SHA-256 of a raw token in lower-case hex, which is stored in place of the token. */
export const hashToken = (raw: string): string => hash('sha256', raw, 'hex');

/**
 * Returns the agent id of a registration that names none: a UUID derived from the token's hash, so
 * that the same token always means the same agent. The token is random, and so are the bits of its
 * hash.
 */
export function agentIdOf(tokenHash: string): string {
  const hex = hash('sha256', `agent ${tokenHash}`, 'hex');
  const variant = ((parseInt(hex.slice(16, 17), 16) & 0x3) | 0x8).toString(16);
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-${variant}${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
}

export interface MadeToken {
  register_token: string;
  expires_at: string;
  /** Id of the token in the audit log; reveals nothing of the token. */
  token_id: string;
}

export class RegisterTokens {
  readonly #kv: KV;
  readonly #now: () => number;

  /** @param now milliseconds since the epoch */
  constructor(kv: KV, now: () => number) {
    this.#kv = kv;
    this.#now = now;
  }

  /** Creates an unused token. Its raw text is in the result and nowhere else. */
  async make(org_id: string): Promise<MadeToken> {
    const register_token = `rt_${randomBytes(TOKEN_BYTES).toString('base64url')}`;
    const now = this.#now();
    const record: TokenRecord = {
      org_id,
      created_at: new Date(now).toISOString(),
      expires_at: new Date(now + TOKEN_MS).toISOString(),
      agent_id: null,
    };
    await this.#checkRoom(org_id);
    const tokenHash = hashToken(register_token);
    await this.#kv.create(keyOf(org_id, tokenHash), JSON.stringify(record));
    return { register_token, expires_at: record.expires_at, token_id: tokenHash.slice(0, 16) };
  }

  /**
   * @throws ApiError rate_limited when the bucket has the maximum number of the organization's
   * tokens
   */
  async #checkRoom(org_id: string): Promise<void> {
    let count = 0;
    let oldest = Infinity;
    for await (const { created } of await kvHeaders(this.#kv, `${orgKey(org_id)}.>`)) {
      count += 1;
      oldest = Math.min(oldest, created.getTime());
    }
    if (count < TOKENS_ORG_MAX) return;
    const waitMs = Math.max(1000, oldest + KEPT_MS - this.#now());
    throw new ApiError(
      'rate_limited',
      `An organization can create at most ${TOKENS_ORG_MAX} register tokens in 48 hours.`,
      {
        headers: { 'Retry-After': String(Math.ceil(waitMs / 1000)) },
      },
    );
  }

  /**
   * Spends a token on an agent. A token that was spent on the same agent is accepted again.
   *
   * @throws ApiError invalid_register_token when the token is unknown, another organization's,
   * expired, or spent on another agent
   */
  async claim(org_id: string, tokenHash: string, agent_id: string): Promise<void> {
    for (let tries = 1; ; tries++) {
      // Tokens written by an older version are stored under their hash alone; they last two days.
      const entry = (await this.#kv.get(keyOf(org_id, tokenHash))) ?? (await this.#kv.get(tokenHash));
      const record = entry?.operation === 'PUT' ? tokenRecord.parse(entry.json()) : null;
      if (entry === null || record?.org_id !== org_id) throw refused('is not a token of this organization');
      if (record.agent_id === agent_id) return;
      if (record.agent_id !== null) throw refused('was already used');
      if (Date.parse(record.expires_at) <= this.#now()) throw refused('has expired');
      try {
        await this.#kv.update(entry.key, JSON.stringify({ ...record, agent_id }), entry.revision);
        return;
      } catch (error) {
        if (!isLostWrite(error) || tries >= CLAIM_TRIES_MAX) throw error;
        await waitAfterLostWrite(tries);
      }
    }
  }
}

const keyOf = (org_id: string, tokenHash: string): string => `${orgKey(org_id)}.${tokenHash}`;

/**
 * Returns the error for a token that does not permit a registration; the detail says why without
 * the token.
 */
export function refused(why: string): ApiError {
  return new ApiError(
    'invalid_register_token',
    `register_token: ${why}; the first registration of an agent needs a valid, unused token`,
  );
}
