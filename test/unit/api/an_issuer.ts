// An issuer of tokens for tests: keys of every kind, a fixed clock, and a key set that is answered
// without a network.
import { createHmac } from 'node:crypto';
import { exportJWK, generateKeyPair, type GenerateKeyPairResult, type JWK, SignJWT } from 'jose';

/** 2026-02-03T04:05:06Z */
export const NOW_MS = Date.UTC(2026, 1, 3, 4, 5, 6);
export const NOW_S = NOW_MS / 1000;
export const SECRET = 'a-secret-of-the-tests-0123456789abcdef';

/** A key pair with its public half as a member of a key set. */
export interface SigningKey extends GenerateKeyPairResult {
  alg: string;
  kid: string;
  jwk: JWK;
}

export async function aKey(alg: string, kid: string): Promise<SigningKey> {
  const pair = await generateKeyPair(alg, { extractable: true });
  return { ...pair, alg, kid, jwk: { ...(await exportJWK(pair.publicKey)), kid, alg, use: 'sig' } };
}

/**
 * Returns a token that is valid for ten minutes unless the claims say otherwise; undefined omits a
 * claim.
 */
export async function signed(
  key: SigningKey,
  claims: Record<string, unknown> = {},
  header: Record<string, unknown> = {},
): Promise<string> {
  return new SignJWT({ sub: 'user_1', exp: NOW_S + 600, ...claims })
    .setProtectedHeader({ alg: key.alg, kid: key.kid, ...header })
    .sign(key.privateKey);
}

const part = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url');

/**
 * Returns a token with any header and payload, signed with HMAC-SHA-256 under `secret`, or unsigned
 * when it is null.
 */
export function forged(header: Record<string, unknown>, payload: unknown, secret: string | Buffer | null): string {
  const text = `${part(header)}.${part(payload)}`;
  return `${text}.${secret === null ? '' : createHmac('sha256', secret).update(text).digest('base64url')}`;
}

/** Returns an HS256 token under SECRET. */
export const hs256 = (payload: unknown, header: Record<string, unknown> = {}, secret = SECRET): string =>
  forged({ alg: 'HS256', typ: 'JWT', ...header }, payload, secret);

/** A provider's key set; `fetch` replaces the real one. */
export class TestProvider {
  fetches = 0;
  keys: JWK[];
  /** Answers instead of the key set when given. */
  answer: ((signal: AbortSignal | null | undefined) => Response | Promise<Response>) | null = null;

  constructor(...keys: SigningKey[]) {
    this.keys = keys.map(({ jwk }) => jwk);
  }

  readonly fetch: typeof fetch = async (_url, init) => {
    this.fetches += 1;
    // The set at the time of the request, even if it changes before the answer arrives.
    const body = JSON.stringify({ keys: this.keys });
    return this.answer === null ? new Response(body) : this.answer(init?.signal);
  };
}
