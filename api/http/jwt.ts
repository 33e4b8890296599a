// Verifies JSON Web Tokens of persons, of one issuer, in this process. Takes a raw token; returns
// the person it names, or throws 401 with the reason, never with the token. With a key set only
// RS256, ES256 and EdDSA are accepted, with a secret only HS256, never both. No token outlives its
// exp by more than CLOCK_SKEW_S; a token without exp is accepted only where the options allow it. A
// known token costs a hash and a lookup, until the key set changes.
import { hash } from 'node:crypto';
import { errors, type JWTPayload, jwtVerify, type JWTVerifyOptions, type JWTVerifyResult } from 'jose';
import type { ReportProblem } from '../../ops/platform/report_problem.ts';
import { type TokenVerifier, unauthenticated } from './auth.ts';
import type { PersonCredential } from './credential.ts';
import { ApiError } from './errors.ts';
import { ProviderKeys } from './jwks.ts';

/** Maximum difference between the clocks of the issuer and of this machine. */
export const CLOCK_SKEW_S = 5;
export const VERIFIED_MAX = 10_000;
const SUB_LENGTH_MAX = 128;
/** Length of the longest address that mail can be sent to. */
const EMAIL_LENGTH_MAX = 254;
/** End of the year 9999: the last time with a four-digit year. */
const EXP_MAX = 253_402_300_799;
const OF_SECRET = ['HS256'];
const OF_PROVIDER = ['RS256', 'ES256', 'EdDSA'];
/**
 * Types of tokens that identify a caller. Issuers also sign others that do not: of a logout, of an
 * event, a proof.
 */
const TYPES = new Set(['jwt', 'at+jwt']);
const CONTROL = /\p{Cc}/u;

export interface TokenVerifierOptions {
  /** HS256 secret; ignored with a jwksUrl. */
  secret?: string | undefined;
  /** True if tokens signed with the secret may lack exp; those of a provider never may. */
  mayBeEndless?: boolean;
  /** URL of the key set of an OIDC provider. */
  jwksUrl?: string | undefined;
  /** Required iss; unchecked without it. */
  issuer?: string | undefined;
  /** Required aud, or a member of it; unchecked without it. */
  audience?: string | undefined;
  /** Milliseconds since the epoch. */
  now: () => number;
  onProblem: ReportProblem;
  fetch?: typeof fetch;
}

/**
 * Verifies a signature and the claims that jose knows.
 * @throws errors of jose, ApiError upstream_unavailable
 */
type Check = (token: string, options: JWTVerifyOptions) => Promise<JWTVerifyResult>;

/**
 * Returns the verifier for the one issuer of the settings. Without a secret and a key set it
 * accepts no token. close() stops refreshing the key set.
 */
export function createTokenVerifier(options: TokenVerifierOptions): TokenVerifier & { close(): void } {
  const verified = new VerifiedTokens(options.now);
  if (options.jwksUrl !== undefined) {
    const { jwksUrl: url, onProblem, audience } = options;
    if (audience === undefined)
      onProblem(
        'SERVICE_JWT_AUDIENCE is not set: tokens that the provider issued for other services are accepted too',
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
    throw unauthenticated(
      'This service accepts no tokens: neither SERVICE_JWT_SECRET nor SERVICE_JWT_JWKS_URL is set.',
    );
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
  };
  const verifyNew = async (token: string, digest: string): Promise<Verified> => {
    const { epoch } = verified;
    let found: Verified;
    try {
      const { payload, protectedHeader } = await check(token, { ...fixed, currentDate: new Date(now()) });
      found = { person: personOf(payload, protectedHeader.typ, now()), audiences: audiencesOf(payload) };
    } catch (error) {
      throw refusalOf(error, algorithms);
    }
    verified.keep(digest, found, epoch);
    return found;
  };
  /** @throws ApiError unauthenticated unless one of the audiences is accepted */
  const personFor = ({ person, audiences }: Verified, also: string | undefined): PersonCredential => {
    if (audience === undefined || audiences.some((one) => one === audience || one === also)) return person;
    throw unauthenticated(
      audiences.length === 0 ? 'The token lacks the claim aud.' : 'The token is for another audience (aud).',
    );
  };
  return (token, also) => {
    const digest = hash('sha256', token, 'base64url');
    const known = verified.get(digest);
    return known === null ? verifyNew(token, digest).then((found) => personFor(found, also)) : personFor(known, also);
  };
}

const audiencesOf = ({ aud }: JWTPayload): readonly unknown[] => (aud === undefined ? [] : [aud].flat());

/**
 * Returns the person that a verified token names.
 * @throws ApiError unauthenticated
 */
function personOf(
  { sub, exp, iat, email, email_verified }: JWTPayload,
  typ: string | undefined,
  nowMs: number,
): PersonCredential {
  if (typ !== undefined && !TYPES.has(typ.toLowerCase().replace(/^application\//, '')))
    throw unauthenticated('The token is of a type that does not identify a caller (typ).');
  // A lone surrogate cannot be stored unchanged: two users would be read back as one.
  if (typeof sub !== 'string' || sub === '' || sub.length > SUB_LENGTH_MAX || CONTROL.test(sub) || !sub.isWellFormed())
    throw unauthenticated(`The token's sub is not 1 to ${SUB_LENGTH_MAX} printable characters.`);
  if (exp !== undefined && exp > EXP_MAX) throw unauthenticated("The token's exp is not a time in seconds.");
  if (iat !== undefined && iat > nowMs / 1000 + CLOCK_SKEW_S)
    throw unauthenticated('The token was issued in the future (iat).');
  // Some providers write booleans as strings.
  const doubted = email_verified !== undefined && email_verified !== true && email_verified !== 'true';
  const usable = typeof email === 'string' && email !== '' && email.length <= EMAIL_LENGTH_MAX && !doubted;
  return Object.freeze({
    kind: 'person',
    user_id: sub,
    email: usable ? email.toLowerCase() : null,
    expires_at: exp ?? null,
  });
}

/** Returns the 401 for a failed token; errors that are not the token's fault pass through. */
function refusalOf(error: unknown, algorithms: readonly string[]): unknown {
  if (error instanceof ApiError) return error;
  return unauthenticated(detailOf(error, algorithms), error);
}

function detailOf(error: unknown, algorithms: readonly string[]): string {
  if (error instanceof errors.JWTExpired) return 'The token has expired.';
  if (error instanceof errors.JWTClaimValidationFailed) return detailOfClaim(error);
  if (error instanceof errors.JWSSignatureVerificationFailed) return "The token's signature is not valid.";
  if (error instanceof errors.JOSEAlgNotAllowed)
    return `The token's algorithm is not accepted; accepted are ${algorithms.join(', ')}.`;
  if (error instanceof errors.JWKSNoMatchingKey)
    return 'The token is signed with a key that the identity provider does not publish.';
  if (error instanceof errors.JWSInvalid || error instanceof errors.JWTInvalid)
    return 'The token cannot be read: it is not a signed JWT.';
  return 'The token cannot be verified.';
}

function detailOfClaim({ claim, reason }: errors.JWTClaimValidationFailed): string {
  if (reason === 'missing') return `The token lacks the claim ${claim}.`;
  if (claim === 'nbf' && reason === 'check_failed') return 'The token is not valid yet (nbf).';
  if (claim === 'iss') return 'The token is from another issuer (iss).';
  if (claim === 'aud') return 'The token is for another audience (aud).';
  return `The token's claim ${claim} is not valid.`;
}

/** The person and the audiences that a valid token names. */
interface Verified {
  person: PersonCredential;
  audiences: readonly unknown[];
}

/** Verified tokens by their digest; the oldest are evicted. */
class VerifiedTokens {
  readonly #now: () => number;
  readonly #tokens = new Map<string, Verified>();
  #epoch = 0;

  constructor(now: () => number) {
    this.#now = now;
  }

  /** Number of key sets that have been in use. */
  get epoch(): number {
    return this.#epoch;
  }

  /**
   * Returns a verified token that is still valid; null for an unknown token.
   * @throws ApiError unauthenticated when the token has expired
   */
  get(digest: string): Verified | null {
    const found = this.#tokens.get(digest);
    if (found === undefined) return null;
    const { expires_at } = found.person;
    // A token without exp is valid as long as the secret, which a process never changes.
    if (expires_at === null || expires_at > Math.floor(this.#now() / 1000) - CLOCK_SKEW_S) return found;
    this.#tokens.delete(digest);
    throw unauthenticated('The token has expired.');
  }

  /** Keeps a verified token, unless the keys have changed since its verification began. */
  keep(digest: string, token: Verified, epoch: number): void {
    if (epoch !== this.#epoch) return;
    if (this.#tokens.size >= VERIFIED_MAX) {
      for (const oldest of this.#tokens.keys()) {
        this.#tokens.delete(oldest);
        break;
      }
    }
    this.#tokens.set(digest, token);
  }

  clear(): void {
    this.#epoch += 1;
    this.#tokens.clear();
  }
}
