// The service's own session tokens, which a login by ticket or at the identity provider puts into the session cookie. They are
// signed with HS256 under a key that is derived from SERVICE_ENCRYPTION_KEY, name their type, and are accepted from the
// cookie only: the verifier of bearer tokens knows neither the key nor the type.
import { createSecretKey } from 'node:crypto';
import { errors, jwtVerify, SignJWT } from 'jose';
import { type TokenVerifier, unauthenticated } from './auth.ts';
import type { PersonCredential } from './credential.ts';
import { SESSION_TOKEN_TYPE } from './session_cookie.ts';

const ALGORITHM = 'HS256';
const ISSUER = 'millrace';
const PURPOSE = 'session tokens, HS256';

export interface SessionTokens extends TokenVerifier {
  /**
   * Returns a token that names the person.
   * @param expires_at seconds since the epoch
   */
  sign(person: Pick<PersonCredential, 'user_id' | 'email'>, expires_at: number): Promise<string>;
}

/**
 * Returns the signer and verifier of a process; all processes of one NATS share the key.
 * @param options.now milliseconds since the epoch
 */
export function createSessionTokens(options: {
  sealer: { derive: (purpose: string) => Buffer };
  now: () => number;
}): SessionTokens {
  const key = createSecretKey(options.sealer.derive(PURPOSE));
  return {
    sign: ({ user_id, email }, expires_at) =>
      new SignJWT(email === null ? {} : { email })
        .setProtectedHeader({ alg: ALGORITHM, typ: SESSION_TOKEN_TYPE })
        .setIssuer(ISSUER)
        .setSubject(user_id)
        .setIssuedAt(new Date(options.now()))
        .setExpirationTime(expires_at)
        .sign(key),
    verify: async (token) => {
      try {
        const { payload } = await jwtVerify(token, key, {
          algorithms: [ALGORITHM],
          typ: SESSION_TOKEN_TYPE,
          issuer: ISSUER,
          requiredClaims: ['sub', 'exp'],
          currentDate: new Date(options.now()),
        });
        const { sub = '', exp = 0, email } = payload;
        return personOf(sub, typeof email === 'string' ? email : null, exp);
      } catch (error) {
        throw unauthenticated(
          error instanceof errors.JWTExpired ? 'The session has expired.' : 'The session is not valid.',
          error,
        );
      }
    },
  };
}

const personOf = (user_id: string, email: string | null, expires_at: number): PersonCredential =>
  Object.freeze({ kind: 'person', user_id, email, expires_at });
