import { createPublicKey } from 'node:crypto';
import { exportJWK } from 'jose';
import { beforeAll, describe, expect, it } from 'vitest';
import type { TokenVerifier } from '../../../api/http/auth.ts';
import type { PersonCredential } from '../../../api/http/credential.ts';
import { ApiError } from '../../../api/http/errors.ts';
import { CLOCK_SKEW_S, createTokenVerifier, type TokenVerifierOptions, VERIFIED_MAX } from '../../../api/http/jwt.ts';
import { aKey, forged, hs256, NOW_MS, NOW_S, SECRET, signed, type SigningKey, TestProvider } from './an_issuer.ts';

const verifierOf = (options: Partial<TokenVerifierOptions>): TokenVerifier & { close(): void } =>
  createTokenVerifier({ now: () => NOW_MS, onProblem: () => undefined, ...options });
const bySecret = (options: Partial<TokenVerifierOptions> = {}) => verifierOf({ secret: SECRET, ...options });

/** Returns the detail of the 401, which must not contain any part of the token. */
async function refusal(verifier: TokenVerifier, token: string): Promise<string> {
  const error: unknown = await Promise.resolve()
    .then(() => verifier.verify(token))
    .then(
      () => null,
      (thrown: unknown) => thrown,
    );
  if (!(error instanceof ApiError)) throw new Error('it was not refused', { cause: error });
  expect(error.code).toBe('unauthenticated');
  expect(error.headers['WWW-Authenticate']).toBe('Bearer realm="service"');
  for (const part of token.split('.').filter((text) => text.length > 8)) expect(error.detail).not.toContain(part);
  return error.detail;
}

const good = { sub: 'user_1', exp: NOW_S + 600 };

describe('a token under the secret', () => {
  it('a token names a person, with the email in lower case', async () => {
    const person = await bySecret().verify(hs256({ ...good, email: 'Ann@Example.COM' }));
    expect(person).toEqual({ kind: 'person', user_id: 'user_1', email: 'ann@example.com', expires_at: NOW_S + 600 });
  });

  it.each([
    ['no email', {}, null],
    ['an email that is verified', { email: 'a@b.c', email_verified: true }, 'a@b.c'],
    ['one that is verified, written as text', { email: 'a@b.c', email_verified: 'true' }, 'a@b.c'],
    ['one that is not verified', { email: 'a@b.c', email_verified: false }, null],
    ['one that is not verified, written as text', { email: 'a@b.c', email_verified: 'false' }, null],
    ['an empty one', { email: '' }, null],
    ['one that is no text', { email: { $ne: '' } }, null],
    ['one that is too long to be one', { email: `${'a'.repeat(251)}@b.c` }, null],
  ])('a token is accepted with %s', async (_, claims, email) => {
    expect((await bySecret().verify(hs256({ ...good, ...claims }))).email).toBe(email);
  });

  it.each([
    ['without exp', { sub: 'user_1' }, 'lacks the claim exp'],
    ['whose exp is no number', { ...good, exp: '2099-01-01' }, 'exp is not valid'],
    ['whose exp is no time', { ...good, exp: 1e15 }, 'exp is not a time'],
    ['whose exp is negative', { ...good, exp: -1 }, 'has expired'],
    ['without sub', { exp: good.exp }, 'lacks the claim sub'],
    ['whose sub is empty', { ...good, sub: '' }, 'sub is not'],
    ['whose sub is no text', { ...good, sub: 17 }, 'sub is not'],
    ['whose sub is too long', { ...good, sub: 's'.repeat(129) }, 'sub is not'],
    ['whose sub has a line break', { ...good, sub: 'user_1\nuser_2' }, 'sub is not'],
    ['whose sub is no text that can be stored', { ...good, sub: 'user_\ud800' }, 'sub is not'],
    ['whose iat is no number', { ...good, iat: 'now' }, 'iat is not valid'],
    ['that is an array', [good], 'cannot be read'],
  ])('a token with %s is rejected', async (_, payload, detail) => {
    expect(await refusal(bySecret(), hs256(payload))).toContain(detail);
  });

  it.each([
    ['the end that it names', { exp: NOW_S + 600 }, NOW_S + 600],
    ['none', {}, null],
  ])('a token may have no expiry where the options permit it; with %s', async (_, end, expires_at) => {
    const person = await bySecret({ mayBeEndless: true }).verify(hs256({ sub: 'user_1', ...end }));
    expect(person).toEqual({ kind: 'person', user_id: 'user_1', email: null, expires_at });
  });

  it('a token that may have no expiry still ends at the one that it has, which must be a time', async () => {
    const verifier = bySecret({ mayBeEndless: true });
    expect(await refusal(verifier, hs256({ ...good, exp: NOW_S - CLOCK_SKEW_S }))).toContain('has expired');
    expect(await refusal(verifier, hs256({ ...good, exp: 1e15 }))).toContain('exp is not a time');
    for (const exp of [null, '2099-01-01', ''])
      expect(await refusal(verifier, hs256({ ...good, exp }))).toContain('exp is not valid');
    expect(await refusal(verifier, hs256({ email: 'a@b.c' }))).toContain('lacks the claim sub');
    expect(await refusal(verifier, hs256({ sub: 'user_1', nbf: NOW_S + 60 }))).toContain('not valid yet');
  });

  it("a token's times allow for a clock that is a few seconds off, and no more", () => {
    expect(CLOCK_SKEW_S).toBe(5);
  });

  it('a token may have a sub of the maximum length', async () => {
    expect((await bySecret().verify(hs256({ ...good, sub: 's'.repeat(128) }))).user_id).toHaveLength(128);
  });

  it.each([
    ['exp', NOW_S - CLOCK_SKEW_S + 1, null],
    ['exp', NOW_S - CLOCK_SKEW_S, 'has expired'],
    ['nbf', NOW_S + CLOCK_SKEW_S, null],
    ['nbf', NOW_S + CLOCK_SKEW_S + 1, 'not valid yet'],
    ['iat', NOW_S + CLOCK_SKEW_S, null],
    ['iat', NOW_S + CLOCK_SKEW_S + 1, 'issued in the future'],
  ])('a token with %s at %i: %s', async (claim, at, detail) => {
    const token = hs256({ ...good, [claim]: at });
    if (detail === null) expect((await bySecret().verify(token)).user_id).toBe('user_1');
    else expect(await refusal(bySecret(), token)).toContain(detail);
  });

  it.each([
    ['issuer', 'iss', 'another issuer'],
    ['audience', 'aud', 'another audience'],
  ])('a token needs the configured %s, and only then', async (setting, claim, detail) => {
    const verifier = bySecret({ [setting]: 'https://ours.example' });
    expect((await verifier.verify(hs256({ ...good, [claim]: 'https://ours.example' }))).user_id).toBe('user_1');
    expect(await refusal(verifier, hs256({ ...good, [claim]: 'https://ours.example/' }))).toContain(detail);
    expect(await refusal(verifier, hs256(good))).toContain(`lacks the claim ${claim}`);
    expect((await bySecret().verify(hs256({ ...good, [claim]: 'anything' }))).user_id).toBe('user_1');
  });

  it('a token may have several audiences', async () => {
    const verifier = bySecret({ audience: 'millrace' });
    expect((await verifier.verify(hs256({ ...good, aud: ['other', 'millrace'] }))).user_id).toBe('user_1');
    expect(await refusal(verifier, hs256({ ...good, aud: ['other', 'millrace2'] }))).toContain('another audience');
  });

  it('an endpoint may accept another audience beside the configured one, also of a cached token', async () => {
    const verifier = bySecret({ audience: 'millrace' });
    const token = hs256({ ...good, aud: 'millrace/mcp' });
    for (let times = 0; times < 2; times++) {
      expect((await verifier.verify(token, 'millrace/mcp')).user_id).toBe('user_1');
      expect(await refusal(verifier, token)).toContain('another audience');
    }
    expect((await verifier.verify(hs256({ ...good, aud: 'millrace' }), 'millrace/mcp')).user_id).toBe('user_1');
  });

  it('a tampered token is rejected', async () => {
    const [header = '', , signature = ''] = hs256(good).split('.');
    const other = hs256({ ...good, sub: 'user_2' }).split('.')[1] ?? '';
    expect(await refusal(bySecret(), `${header}.${other}.${signature}`)).toContain('signature');
    expect(await refusal(bySecret(), hs256(good, {}, `${SECRET}x`))).toContain('signature');
    expect(await refusal(bySecret(), hs256(good).slice(0, -3))).toContain('signature');
  });

  it.each([
    ['none', forged({ alg: 'none' }, good, null)],
    ['None', forged({ alg: 'None' }, good, null)],
    ['another HMAC', forged({ alg: 'HS384' }, good, SECRET)],
    ['no algorithm', forged({}, good, SECRET)],
    ['an algorithm that is no text', forged({ alg: ['HS256'] }, good, SECRET)],
    ['an extension that must be understood', hs256(good, { crit: ['exp2'], exp2: 1 })],
    ['a payload that is not encoded', hs256(good, { crit: ['b64'], b64: false })],
    ['no JSON', 'aaaa.bbbb.cccc'],
    ['an empty signature', `${hs256(good).split('.').slice(0, 2).join('.')}.`],
  ])('a token with %s is rejected', async (_, token) => {
    expect(await refusal(bySecret(), token)).not.toBe('');
  });

  it.each([
    ['JWT', true],
    ['at+jwt', true],
    ['application/at+JWT', true],
    ['logout+jwt', false],
    ['secevent+jwt', false],
  ])('a token of the type %s: accepted is %s', async (typ, taken) => {
    const token = hs256(good, { typ });
    if (taken) expect((await bySecret().verify(token)).user_id).toBe('user_1');
    else expect(await refusal(bySecret(), token)).toContain('type');
  });

  it('without a secret and a provider no token is accepted', async () => {
    expect(await refusal(verifierOf({}), hs256(good))).toContain('accepts no tokens');
  });
});

describe('a token that was verified before', () => {
  it('a token verified before is answered at once, until it expires', async () => {
    let now = NOW_MS;
    const verifier = bySecret({ now: () => now });
    const token = hs256(good);
    const person = await verifier.verify(token);
    expect(verifier.verify(token)).toBe(person);
    now = (good.exp + CLOCK_SKEW_S) * 1000 - 1;
    expect(verifier.verify(token)).toBe(person);
    now += 1;
    expect(await refusal(verifier, token)).toContain('has expired');
    expect(await refusal(verifier, token)).toContain('has expired');
  });

  it('a cached token without an expiry is answered at once as long as it is cached', async () => {
    let now = NOW_MS;
    const verifier = bySecret({ mayBeEndless: true, now: () => now });
    const token = hs256({ sub: 'user_1' });
    const person = await verifier.verify(token);
    now += 366 * 86_400_000;
    expect(verifier.verify(token)).toBe(person);
  });

  it("a cached token's result cannot be changed by its caller", async () => {
    const person: PersonCredential = await bySecret().verify(hs256(good));
    expect(() => {
      person.user_id = 'user_2';
    }).toThrow(TypeError);
  });

  it('a cached token is evicted after VERIFIED_MAX newer ones', async () => {
    const verifier = bySecret();
    const tokenOf = (n: number) => hs256({ ...good, sub: `user_${n}` });
    for (let n = 0; n < VERIFIED_MAX; n++) await verifier.verify(tokenOf(n));
    expect(verifier.verify(tokenOf(0))).not.toBeInstanceOf(Promise);
    await verifier.verify(tokenOf(VERIFIED_MAX));
    expect(verifier.verify(tokenOf(1))).not.toBeInstanceOf(Promise);
    const again = verifier.verify(tokenOf(0));
    expect(again).toBeInstanceOf(Promise);
    await again;
  });
});

describe('a token of a provider', () => {
  let rsa: SigningKey;
  let ec: SigningKey;
  let ed: SigningKey;
  beforeAll(async () => {
    [rsa, ec, ed] = await Promise.all([aKey('RS256', 'rsa'), aKey('ES256', 'ec'), aKey('EdDSA', 'ed')]);
  });
  const byProvider = (...keys: SigningKey[]) =>
    verifierOf({ secret: SECRET, jwksUrl: 'https://idp.example/jwks', fetch: new TestProvider(...keys).fetch });

  it("a provider's token is accepted when signed with RS256, ES256 or EdDSA", async () => {
    const verifier = byProvider(rsa, ec, ed);
    for (const key of [rsa, ec, ed])
      expect((await verifier.verify(await signed(key, { sub: `user_${key.kid}` }))).user_id).toBe(`user_${key.kid}`);
  });

  it("a provider's token without an expiry is rejected, whatever tokens under a secret may do", async () => {
    const endless = await signed(rsa, { exp: undefined });
    const options = { jwksUrl: 'https://idp.example/jwks', fetch: new TestProvider(rsa).fetch, mayBeEndless: true };
    expect(await refusal(verifierOf(options), endless)).toContain('lacks the claim exp');
    expect((await verifierOf(options).verify(await signed(rsa))).user_id).toBe('user_1');
  });

  it('a token signed with the secret is rejected, as the provider replaces it', async () => {
    expect(await refusal(byProvider(rsa), hs256(good))).toContain('algorithm');
  });

  it('a token is rejected when a public key of the provider served as its HMAC secret', async () => {
    const verifier = byProvider(rsa);
    const key = createPublicKey({ key: { ...rsa.jwk }, format: 'jwk' });
    for (const secret of [
      key.export({ format: 'pem', type: 'spki' }),
      key.export({ format: 'der', type: 'spki' }),
      JSON.stringify(rsa.jwk),
    ]) {
      expect(await refusal(verifier, forged({ alg: 'HS256', kid: 'rsa' }, good, secret))).toContain('algorithm');
      expect(await refusal(verifier, forged({ alg: 'RS256', kid: 'rsa' }, good, secret))).toContain('signature');
    }
  });

  it('a token is rejected when unsigned, or when its key is of another kind than its algorithm', async () => {
    const verifier = byProvider(rsa, ec);
    expect(await refusal(verifier, forged({ alg: 'none', kid: 'rsa' }, good, null))).toContain('algorithm');
    expect(await refusal(verifier, await signed(ec, {}, { kid: 'rsa' }))).toContain('does not publish');
  });

  it('a token that brings its own key is rejected', async () => {
    const own = await aKey('RS256', 'rsa');
    const header = { jwk: own.jwk, jku: 'https://evil.example/jwks' };
    expect(await refusal(byProvider(rsa), await signed(own, {}, header))).toContain('signature');
  });

  it('a token is rejected when the set has a symmetric or private key for it', async () => {
    const provider = new TestProvider();
    provider.keys = [
      { kty: 'oct', k: Buffer.from(SECRET).toString('base64url'), kid: 'oct' },
      { ...(await exportJWK(ec.privateKey)), kid: 'ec' },
    ];
    const verifier = verifierOf({ jwksUrl: 'https://idp.example/jwks', fetch: provider.fetch });
    expect(await refusal(verifier, hs256(good, { kid: 'oct' }))).toContain('algorithm');
    expect(await refusal(verifier, await signed(ec))).toContain('cannot be verified');
  });

  it('a token without a key id is verified with every suitable key', async () => {
    const second = await aKey('ES256', 'second');
    const stranger = await aKey('ES256', 'stranger');
    const verifier = byProvider(rsa, ec, second);
    for (const key of [ec, second])
      expect((await verifier.verify(await signed(key, {}, { kid: undefined }))).user_id).toBe('user_1');
    expect(await refusal(verifier, await signed(second, { exp: NOW_S - 600 }, { kid: undefined }))).toContain(
      'has expired',
    );
    expect(await refusal(verifier, await signed(stranger, {}, { kid: undefined }))).toContain('signature');
  });

  it('a token needs no audience when none is configured, which is logged once', () => {
    const problems: string[] = [];
    const onProblem = (problem: string) => void problems.push(problem);
    const options = { jwksUrl: 'https://idp.example/jwks', fetch: new TestProvider(rsa).fetch, onProblem };
    verifierOf(options).close();
    expect(problems).toEqual([expect.stringContaining('SERVICE_JWT_AUDIENCE')]);
    verifierOf({ ...options, audience: 'millrace' }).close();
    expect(problems).toHaveLength(1);
  });
});
