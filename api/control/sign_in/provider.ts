// The identity provider as a browser login sees it (OpenID Connect Core 1.0, code flow with PKCE): where it asks the
// person, and who the person is that a code stands for. Takes the settings of the client; each request to the provider
// is bounded in time. Endpoints come from the provider's discovery document, which is read again after an hour.
import { createHash, randomBytes } from 'node:crypto';
import { decodeJwt } from 'jose';
import { z } from 'zod';
import type { TokenVerifier } from '../../http/auth.ts';
import type { PersonCredential } from '../../http/credential.ts';

const REQUEST_MS_MAX = 8000;
const DISCOVERY_MS = 3_600_000;
const RANDOM_BYTES = 32;
const SCOPE = 'openid email';

const discovery = z.object({
  issuer: z.string(),
  authorization_endpoint: z.url(),
  token_endpoint: z.url(),
  userinfo_endpoint: z.url().optional(),
  token_endpoint_auth_methods_supported: z.array(z.string()).optional(),
});
type Discovery = z.infer<typeof discovery>;
const tokens = z.object({ id_token: z.string(), access_token: z.string().optional() });
const userinfo = z.object({
  sub: z.string(),
  email: z.string().max(254).optional(),
  email_verified: z.union([z.boolean(), z.string()]).optional(),
});

export interface ProviderSettings {
  /** The value of iss; the discovery document is below it. */
  issuer: string;
  client_id: string;
  client_secret: string;
  /** Address to which the provider sends the browser back. */
  redirect_uri: string;
  /** Verifies ID tokens: their signature, issuer, audience and times. */
  verifier: TokenVerifier;
  /** Milliseconds since the epoch. */
  now: () => number;
}

/** What one login must remember until the provider answers. */
export interface Attempt {
  state: string;
  nonce: string;
  /** PKCE verifier. */
  verifier: string;
}

/** The provider did not answer, or answered something else than the protocol says. */
export class ProviderFailed extends Error {}

export class Provider {
  readonly #settings: ProviderSettings;
  #known: { document: Discovery; read_at: number } | null = null;

  constructor(settings: ProviderSettings) {
    this.#settings = settings;
  }

  /**
   * Begins a login.
   * @returns the address at which the provider asks the person, and what the callback needs
   * @throws ProviderFailed
   */
  async begin(): Promise<{ address: string; attempt: Attempt }> {
    const { client_id, redirect_uri } = this.#settings;
    const { authorization_endpoint } = await this.#discovery();
    const attempt = { state: random(), nonce: random(), verifier: random() };
    const address = new URL(authorization_endpoint);
    const params = {
      response_type: 'code',
      client_id,
      redirect_uri,
      scope: SCOPE,
      state: attempt.state,
      nonce: attempt.nonce,
      code_challenge: createHash('sha256').update(attempt.verifier).digest('base64url'),
      code_challenge_method: 'S256',
    };
    for (const [name, value] of Object.entries(params)) address.searchParams.set(name, value);
    return { address: address.href, attempt };
  }

  /**
   * Exchanges a code for the person.
   * @throws ProviderFailed; ApiError unauthenticated for an ID token that is not valid
   */
  async finish(code: string, attempt: Attempt): Promise<PersonCredential> {
    const { client_id, client_secret, redirect_uri, verifier } = this.#settings;
    const { token_endpoint, token_endpoint_auth_methods_supported: methods } = await this.#discovery();
    const form = new URLSearchParams({
      grant_type: 'authorization_code',
      code,
      redirect_uri,
      code_verifier: attempt.verifier,
    });
    const headers: Record<string, string> = { 'Content-Type': 'application/x-www-form-urlencoded' };
    // client_secret_basic is the default of the protocol; its parts are form-encoded (RFC 6749, 2.3.1).
    if (methods !== undefined && !methods.includes('client_secret_basic')) {
      form.set('client_id', client_id);
      form.set('client_secret', client_secret);
    } else {
      const pair = `${encodeURIComponent(client_id)}:${encodeURIComponent(client_secret)}`;
      headers['Authorization'] = `Basic ${Buffer.from(pair).toString('base64')}`;
    }
    const answer = await ask(token_endpoint, tokens, { method: 'POST', headers, body: form.toString() });
    const person = await verifier.verify(answer.id_token);
    if (decodeJwt(answer.id_token)['nonce'] !== attempt.nonce)
      throw new ProviderFailed('the ID token is of another login (nonce)');
    return person.email === null ? this.#withEmail(person, answer.access_token) : person;
  }

  /** Returns the person with the address that the provider gives at its userinfo endpoint, where it is verified. */
  async #withEmail(person: PersonCredential, access_token: string | undefined): Promise<PersonCredential> {
    const { userinfo_endpoint } = await this.#discovery();
    if (userinfo_endpoint === undefined || access_token === undefined) return person;
    const info = await ask(userinfo_endpoint, userinfo, { headers: { Authorization: `Bearer ${access_token}` } });
    const verified = info.email_verified === undefined || String(info.email_verified) === 'true';
    if (info.sub !== person.user_id || info.email === undefined || !verified) return person;
    return { ...person, email: info.email.toLowerCase() };
  }

  async #discovery(): Promise<Discovery> {
    const { issuer, now } = this.#settings;
    if (this.#known !== null && now() - this.#known.read_at < DISCOVERY_MS) return this.#known.document;
    const document = await ask(`${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`, discovery, {});
    if (document.issuer !== issuer) throw new ProviderFailed(`the discovery document is of ${document.issuer}`);
    this.#known = { document, read_at: now() };
    return document;
  }
}

const random = (): string => randomBytes(RANDOM_BYTES).toString('base64url');

async function ask<T>(address: string, shape: z.ZodType<T>, init: RequestInit): Promise<T> {
  try {
    const answer = await fetch(address, {
      ...init,
      redirect: 'error',
      signal: AbortSignal.timeout(REQUEST_MS_MAX),
    });
    if (!answer.ok) throw new ProviderFailed(`${new URL(address).pathname} answered ${answer.status}`);
    return shape.parse(await answer.json());
  } catch (cause) {
    throw cause instanceof ProviderFailed ? cause : new ProviderFailed('the provider did not answer', { cause });
  }
}
