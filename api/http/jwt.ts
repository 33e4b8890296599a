// Tokens of persons: JSON Web Tokens of one issuer, checked in this process.
// Comes in: a raw token. Goes out: who it names (PersonCredential), or 401 with what is wrong, never with the token.
// Guarantees: with a key set only RS256, ES256 and EdDSA, with a secret only HS256, never both; no token outlives its exp by
// more than CLOCK_SKEW_S, and one without exp is taken only where the options say so; a token seen before costs a hash and a
// look-up, until the key set changes.
import { hash } from 'node:crypto';
import { errors, type JWTPayload, jwtVerify, type JWTVerifyOptions, type JWTVerifyResult } from 'jose';
import { type TokenVerifier, unauthenticated } from './auth.ts';
import type { PersonCredential } from './credential.ts';
import { ApiError } from './errors.ts';
import { ProviderKeys } from './jwks.ts';

/** Clocks of the issuer and of this machine may differ by this much. */
export const CLOCK_SKEW_S = 5;
export const VERIFIED_MAX = 10_000;
const SUB_LENGTH_MAX = 128;
/** The longest address that mail can be sent to. */
const EMAIL_LENGTH_MAX = 254;
/** The end of the year 9999: the last time that has a four-digit year. */
const EXP_MAX = 253_402_300_799;
const OF_SECRET = ['HS256'];
const OF_PROVIDER = ['RS256', 'ES256', 'EdDSA'];
/** Types of tokens that say who is calling. An issuer signs others too, which do not: of a logout, of an event, a proof. */
const TYPES = new Set(['jwt', 'at+jwt']);
const CONTROL = /\p{Cc}/u;

export interface TokenVerifierOptions {
  /** HS256 secret. Not used with a jwksUrl. */
  secret?: string | undefined;
  /** Whether tokens under the secret may come without exp; those of a provider never do. */
  mayBeEndless?: boolean;
  /** Key set of an OIDC provider. */
  jwksUrl?: string | undefined;
  /** What iss has to be; unchecked without it. */
  issuer?: string | undefined;
  /** What aud has to be or hold; unchecked without it. */
  audience?: string | undefined;
  /** Milliseconds since the epoch. */
  now: () => number;
  onProblem: (problem: string, cause: unknown) => void;
  fetch?: typeof fetch;
}

/** Verifies a signature and the claims that jose knows. @throws errors of jose, ApiError upstream_unavailable */
type Check = (token: string, options: JWTVerifyOptions) => Promise<JWTVerifyResult>;

/**
 * The verifier of the one issuer that the settings name. Without a secret and a key set it takes no token at all.
 * close() stops the refreshing of the key set.
 */
export function createTokenVerifier(options: TokenVerifierOptions): TokenVerifier & { close(): void } {
  const verified = new VerifiedTokens(options.now);
  if (options.jwksUrl !== undefined) {
    const { jwksUrl: url, onProblem, audience } = options;
    if (audience === undefined)
      onProblem(
        'SERVICE_JWT_AUDIENCE is not set: tokens that the provider made for other services are taken too',
        undefined,
      );
    const onChange = () => {
      verified.clear();
    };
    const keys = new ProviderKeys({ url, fetch: options.fetch ?? fetch, onChange, onProblem });
    const close = () => {
      keys.close();
    };
    return {
      verify: verifyWith(checkWithProvider(keys), OF_PROVIDER, { ...options, mayBeEndless: false }, verified),
      close,
    };
  }
  if (options.secret !== undefined) {
    const secret = new TextEncoder().encode(options.secret);
    const check: Check = (token, jwtOptions) => jwtVerify(token, secret, jwtOptions);
    return { verify: verifyWith(check, OF_SECRET, options, verified), close: () => undefined };
  }
  const verify = () => {
    throw unauthenticated('This service takes no tokens: neither SERVICE_JWT_SECRET nor SERVICE_JWT_JWKS_URL is set.');
  };
  return { verify, close: () => undefined };
}

function checkWithProvider(keys: ProviderKeys): Check {
  return async (token, options) => {
    let candidates: Awaited<ReturnType<ProviderKeys['keysFor']>> = [];
    const first = async (header: Parameters<ProviderKeys['keysFor']>[0]) => {
      candidates = await keys.keysFor(header);
      const [key] = candidates;
      if (key === undefined) throw new errors.JWKSNoMatchingKey();
      return key;
    };
    try {
      return await jwtVerify(token, first, options);
    } catch (error) {
      if (!(error instanceof errors.JWSSignatureVerificationFailed) || candidates.length < 2) throw error;
    }
    for (const key of candidates.slice(1)) {
      try {
        return await jwtVerify(token, key, options);
      } catch (error) {
        if (!(error instanceof errors.JWSSignatureVerificationFailed)) throw error;
      }
    }
    throw new errors.JWSSignatureVerificationFailed();
  };
}

function verifyWith(
  check: Check,
  algorithms: string[],
  { issuer, audience, mayBeEndless, now }: TokenVerifierOptions,
  verified: VerifiedTokens,
): TokenVerifier['verify'] {
  const fixed: JWTVerifyOptions = {
    algorithms,
    clockTolerance: CLOCK_SKEW_S,
    requiredClaims: mayBeEndless === true ? ['sub'] : ['exp', 'sub'],
    ...(issuer === undefined ? {} : { issuer }),
    ...(audience === undefined ? {} : { audience }),
  };
  const verifyNew = async (token: string, digest: string) => {
    const { epoch } = verified;
    let person: PersonCredential;
    try {
      const { payload, protectedHeader } = await check(token, { ...fixed, currentDate: new Date(now()) });
      person = personOf(payload, protectedHeader.typ, now());
    } catch (error) {
      throw refusalOf(error, algorithms);
    }
    verified.keep(digest, person, epoch);
    return person;
  };
  return (token) => {
    const digest = hash('sha256', token, 'base64url');
    return verified.get(digest) ?? verifyNew(token, digest);
  };
}

/** Who a verified token names. @throws ApiError unauthenticated */
function personOf(
  { sub, exp, iat, email, email_verified }: JWTPayload,
  typ: string | undefined,
  nowMs: number,
): PersonCredential {
  if (typ !== undefined && !TYPES.has(typ.toLowerCase().replace(/^application\//, '')))
    throw unauthenticated('The token is of a type that does not say who is calling (typ).');
  // A lone surrogate cannot be stored as it is: two different users would be read back as one.
  if (typeof sub !== 'string' || sub === '' || sub.length > SUB_LENGTH_MAX || CONTROL.test(sub) || !sub.isWellFormed())
    throw unauthenticated(`The token's sub is not 1 to ${String(SUB_LENGTH_MAX)} printable characters.`);
  if (exp !== undefined && exp > EXP_MAX) throw unauthenticated("The token's exp is not a time in seconds.");
  if (iat !== undefined && iat > nowMs / 1000 + CLOCK_SKEW_S)
    throw unauthenticated('The token was issued in the future (iat).');
  // Some providers write booleans as text.
  const doubted = email_verified !== undefined && email_verified !== true && email_verified !== 'true';
  const usable = typeof email === 'string' && email !== '' && email.length <= EMAIL_LENGTH_MAX && !doubted;
  return Object.freeze({
    kind: 'person',
    user_id: sub,
    email: usable ? email.toLowerCase() : null,
    expires_at: exp ?? null,
  });
}

/** The 401 for a token that failed; what is no fault of the token passes through. */
function refusalOf(error: unknown, algorithms: readonly string[]): unknown {
  if (error instanceof ApiError) return error;
  return unauthenticated(detailOf(error, algorithms), error);
}

function detailOf(error: unknown, algorithms: readonly string[]): string {
  if (error instanceof errors.JWTExpired) return 'The token has expired.';
  if (error instanceof errors.JWTClaimValidationFailed) return detailOfClaim(error);
  if (error instanceof errors.JWSSignatureVerificationFailed) return "The token's signature is not valid.";
  if (error instanceof errors.JOSEAlgNotAllowed)
    return `The token's algorithm is not taken here; these are: ${algorithms.join(', ')}.`;
  if (error instanceof errors.JWKSNoMatchingKey)
    return 'The token is signed with a key that the identity provider does not publish.';
  if (error instanceof errors.JWSInvalid || error instanceof errors.JWTInvalid)
    return 'The token cannot be read: it is no signed JWT.';
  return 'The token cannot be verified.';
}

function detailOfClaim({ claim, reason }: errors.JWTClaimValidationFailed): string {
  if (reason === 'missing') return `The token lacks the claim ${claim}.`;
  if (claim === 'nbf' && reason === 'check_failed') return 'The token is not valid yet (nbf).';
  if (claim === 'iss') return 'The token is from another issuer (iss).';
  if (claim === 'aud') return 'The token is for another audience (aud).';
  return `The token's claim ${claim} is not valid.`;
}

/** Tokens that were found valid, by their digest; the oldest make room. */
class VerifiedTokens {
  readonly #now: () => number;
  readonly #persons = new Map<string, PersonCredential>();
  #epoch = 0;

  constructor(now: () => number) {
    this.#now = now;
  }

  /** Counts the key sets that have been in force. */
  get epoch(): number {
    return this.#epoch;
  }

  /** The person of a token that is still valid; null when it is not known. @throws ApiError unauthenticated when it has expired */
  get(digest: string): PersonCredential | null {
    const person = this.#persons.get(digest);
    if (person === undefined) return null;
    // Without an end it is valid for as long as the secret is the same, which a process never changes.
    if (person.expires_at === null || person.expires_at > Math.floor(this.#now() / 1000) - CLOCK_SKEW_S) return person;
    this.#persons.delete(digest);
    throw unauthenticated('The token has expired.');
  }

  /** Keeps what was verified, unless the keys have changed since it began. */
  keep(digest: string, person: PersonCredential, epoch: number): void {
    if (epoch !== this.#epoch) return;
    if (this.#persons.size >= VERIFIED_MAX) {
      for (const oldest of this.#persons.keys()) {
        this.#persons.delete(oldest);
        break;
      }
    }
    this.#persons.set(digest, person);
  }

  clear(): void {
    this.#epoch += 1;
    this.#persons.clear();
  }
}
