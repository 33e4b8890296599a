// Tokens and sessions over HTTP, with the shared secret of a custom portal and with a real OIDC
// provider that rotates its keys.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startTestNats, type TestNats } from '../../support/nats.ts';
import { startOidc, type TestOidc } from '../../support/oidc.ts';
import { eventually } from '../../support/wait.ts';
import { makeMember } from './a_cast.ts';
import { asUser, call, KEY, ORG, startTestApi, type TestApi, tokenOf } from './an_api.ts';

const AUDIENCE = 'https://millrace.example';
/** Owner of the organization that an API creates at its first start. */
const OWNER = 'user_local';

let nats: TestNats;
beforeAll(async () => {
  nats = await startTestNats();
});
afterAll(async () => {
  await nats.remove();
});

const PATH = '/v1/session';
/** Returns these headers without an API key and without a bearer token. */
const asBrowser = (headers: Record<string, string>) => ({
  'X-Org-Api-Key': undefined,
  'X-Org-Id': undefined,
  ...headers,
});
const cookieOf = (token: string) => ({ Cookie: `svc_session=${token}` });

describe('a session', () => {
  let api: TestApi;
  let token: string;
  beforeAll(async () => {
    api = await startTestApi({ natsUrl: nats.url });
    token = await tokenOf({ sub: OWNER, email: 'Owner@Example.com' });
  });
  afterAll(async () => {
    await api.close();
  });
  const sameOrigin = () => ({ Origin: api.url });

  test('a session begins with a token, which goes into an HttpOnly cookie until it expires', async () => {
    const exp = Math.floor(Date.now() / 1000) + 1000;
    const own = await tokenOf({ sub: OWNER, email: 'Owner@Example.com', exp });
    const answer = await call(api, 'POST', PATH, { headers: asUser(own) });
    expect(answer.status).toBe(201);
    expect(answer.json?.['data']).toMatchObject({
      user_id: OWNER,
      email: 'owner@example.com',
      expires_at: new Date(exp * 1000).toISOString(),
      orgs: [{ org_id: ORG, name: ORG, role: 'owner' }],
    });
    const [pair, ...attributes] = (answer.headers.get('set-cookie') ?? '').split('; ');
    expect(pair).toBe(`svc_session=${own}`);
    expect(attributes.map((text) => text.replace(/^Max-Age=9\d\d$/, 'Max-Age=9xx'))).toEqual([
      'Path=/',
      'Max-Age=9xx',
      'HttpOnly',
      'SameSite=Strict',
    ]);
    expect(answer.headers.get('cache-control')).toBe('no-store');
  });

  test('a session begins with a token without an expiry too, for twelve hours, but not in production', async () => {
    const endless = await tokenOf({ sub: OWNER, exp: undefined });
    const began = Date.now();
    const begun = await call(api, 'POST', PATH, { headers: asUser(endless) });
    expect(begun.status).toBe(201);
    const { expires_at } = begun.json?.['data'] as { expires_at: string };
    expect(Math.abs(Date.parse(expires_at) - began - 12 * 3_600_000)).toBeLessThan(60_000);
    expect(begun.headers.get('set-cookie')).toMatch(/; Max-Age=43(1\d\d|200); /);
    for (const headers of [asUser(endless), asBrowser(cookieOf(endless))]) {
      const shown = await call(api, 'GET', PATH, { headers });
      expect([shown.status, shown.json?.['data']]).toMatchObject([200, { user_id: OWNER, expires_at: null }]);
    }
    expect((await call(api, 'GET', `/orgs/${ORG}`, { headers: asUser(endless) })).status).toBe(200);
    const production = await startTestApi({ natsUrl: nats.url, production: true });
    try {
      const refused = await call(production, 'GET', PATH, { headers: asUser(endless) });
      expect([refused.status, refused.json?.['detail']]).toEqual([401, 'The token lacks the claim exp.']);
      expect((await call(production, 'GET', PATH, { headers: asUser(token) })).status).toBe(200);
    } finally {
      await production.close();
    }
  });

  test('a session never puts an API key into the cookie', async () => {
    const both = await call(api, 'POST', PATH, { headers: { ...asUser(token), 'X-Org-Api-Key': KEY } });
    expect(both.headers.get('set-cookie')).not.toContain(KEY);
    expect((await call(api, 'POST', PATH, { headers: asUser(KEY) })).status).toBe(403);
    expect((await call(api, 'GET', `/orgs/${ORG}`, { headers: asBrowser(cookieOf(KEY)) })).status).toBe(401);
  });

  test('a browser reads with the cookie alone', async () => {
    const shown = await call(api, 'GET', PATH, { headers: asBrowser(cookieOf(token)) });
    expect([shown.status, shown.json?.['data']]).toMatchObject([200, { user_id: OWNER, orgs: [{ org_id: ORG }] }]);
    expect((await call(api, 'GET', `/orgs/${ORG}`, { headers: asBrowser(cookieOf(token)) })).status).toBe(200);
  });

  test("the cookie permits changes only from the service's own origin", async () => {
    const makeKey = (headers: Record<string, string>) =>
      call(api, 'POST', `/orgs/${ORG}/api-keys`, {
        body: { name: 'by cookie', scopes: ['traces:read'] },
        headers: asBrowser({ ...cookieOf(token), ...headers }),
      });
    for (const headers of [
      {},
      { Origin: 'https://evil.example' },
      { Origin: 'null' },
      { 'Sec-Fetch-Site': 'cross-site' },
    ]) {
      const refused = await makeKey(headers);
      expect([JSON.stringify(headers), refused.status, refused.json?.['code']]).toEqual([
        JSON.stringify(headers),
        403,
        'forbidden',
      ]);
    }
    for (const headers of [sameOrigin(), { 'Sec-Fetch-Site': 'same-origin' }, { 'X-Requested-With': 'fetch' }])
      expect((await makeKey(headers)).status).toBe(201);
  });

  test("a session begins by cookie only from the service's own origin", async () => {
    expect((await call(api, 'POST', PATH, { headers: asBrowser(cookieOf(token)) })).status).toBe(403);
    expect(
      (await call(api, 'POST', PATH, { headers: asBrowser({ ...cookieOf(token), ...sameOrigin() }) })).status,
    ).toBe(201);
  });

  test('a session ends with the cookie cleared, whoever asks', async () => {
    for (const headers of [cookieOf(token), cookieOf('no.token.atall'), {}]) {
      const answer = await call(api, 'DELETE', PATH, { headers: asBrowser(headers) });
      expect([answer.status, answer.json?.['data']]).toEqual([200, { id: 'svc_session', deleted: true }]);
      expect(answer.headers.get('set-cookie')).toBe('svc_session=; Path=/; Max-Age=0; HttpOnly; SameSite=Strict');
    }
  });

  test('a session has an https-only cookie only in production', async () => {
    const production = await startTestApi({ natsUrl: nats.url, production: true });
    try {
      for (const method of ['POST', 'DELETE']) {
        const { headers } = await call(production, method, PATH, { headers: asUser(token) });
        expect(headers.get('set-cookie')?.split('; ')).toContain('Secure');
      }
    } finally {
      await production.close();
    }
  });

  test.each([
    ['nothing', {}],
    ['an empty cookie', { Cookie: 'svc_session=' }],
    ['a cookie that is no token', { Cookie: 'svc_session=hello' }],
    ['two cookies that differ', { Cookie: 'svc_session=aGk.aGk.aGk; svc_session=aG8.aG8.aG8' }],
    ['a token that is none', { Authorization: 'Bearer aGk.aGk.aGk' }],
  ])('a session is rejected with %s', async (_, headers) => {
    const answer = await call(api, 'GET', PATH, { headers: asBrowser(headers) });
    expect([answer.status, answer.json?.['code']]).toEqual([401, 'unauthenticated']);
  });

  test('a session is rejected with a token under another secret, and an expired token is named as such', async () => {
    const forged = await tokenOf({ sub: OWNER }, 'another-secret-of-the-tests-0123456789');
    expect((await call(api, 'GET', PATH, { headers: asUser(forged) })).json?.['detail']).toBe(
      "The token's signature is not valid.",
    );
    const expired = await tokenOf({ sub: OWNER, exp: Math.floor(Date.now() / 1000) - 10 });
    expect((await call(api, 'GET', PATH, { headers: asUser(expired) })).json?.['detail']).toBe(
      'The token has expired.',
    );
  });

  test('a session shows the permissions of the role and the grants of the person in each organization', async () => {
    const owned = await call(api, 'GET', PATH, { headers: asUser(token) });
    const [org] = (owned.json?.['data'] as { orgs: { permissions: string[]; grants: unknown[] }[] }).orgs;
    expect(org?.permissions).toContain('settings:edit');
    expect(org?.grants).toEqual([]);

    const viewer = await makeMember(api, 'viewer');
    const viewed = await call(api, 'GET', PATH, { headers: asUser(viewer.token) });
    expect(viewed.json?.['data']).toMatchObject({
      orgs: [{ role: 'viewer', permissions: ['agents:read', 'references:read', 'org:read'], grants: [] }],
    });
  });

  test('about names the ways to log in and the parts that are configured, to everybody', async () => {
    const answer = await call(api, 'GET', '/v1/about', { headers: asBrowser({}) });
    expect([answer.status, answer.json?.['data']]).toEqual([
      200,
      { version: '1.7.0', environment: 'development', login: ['ticket', 'token'], models: false, mail: false },
    ]);
  });

  test('a session of a person without an organization shows none, and opens none', async () => {
    const stranger = await tokenOf({ sub: 'user_stranger', role: 'owner', org_id: ORG });
    const shown = await call(api, 'GET', PATH, { headers: asUser(stranger) });
    expect([shown.status, shown.json?.['data']]).toMatchObject([
      200,
      { user_id: 'user_stranger', email: null, orgs: [] },
    ]);
    const refused = await call(api, 'GET', `/orgs/${ORG}`, { headers: asUser(stranger) });
    expect([refused.status, refused.json?.['code']]).toEqual([403, 'forbidden']);
  });
});

describe('tokens of an OIDC provider', () => {
  let oidc: TestOidc;
  let api: TestApi;
  beforeAll(async () => {
    oidc = await startOidc('RS256');
    api = await startTestApi({
      natsUrl: nats.url,
      provider: { jwksUrl: oidc.jwksUrl, issuer: oidc.issuer, audience: AUDIENCE },
    });
  });
  afterAll(async () => {
    await api.close();
    await oidc.stop();
  });
  const shownFor = (token: string, by: TestApi = api) => call(by, 'GET', PATH, { headers: asUser(token) });

  test('an OIDC token names the person who signed in; their member record decides what they may do', async () => {
    const owner = await oidc.signIn(OWNER, AUDIENCE);
    const shown = await shownFor(owner);
    expect([shown.status, shown.json?.['data']]).toMatchObject([
      200,
      { user_id: OWNER, email: `${OWNER}@example.com`, orgs: [{ org_id: ORG, role: 'owner' }] },
    ]);
    expect((await call(api, 'GET', `/orgs/${ORG}`, { headers: asUser(owner) })).status).toBe(200);
    const stranger = await oidc.signIn('user_stranger', AUDIENCE);
    expect((await shownFor(stranger)).json?.['data']).toMatchObject({ user_id: 'user_stranger', orgs: [] });
    expect((await call(api, 'GET', `/orgs/${ORG}`, { headers: asUser(stranger) })).status).toBe(403);
  });

  test('an OIDC token of a client that acts for itself has no email', async () => {
    const shown = await shownFor(await oidc.clientToken(AUDIENCE));
    expect([shown.status, shown.json?.['data']]).toMatchObject([200, { user_id: 'portal', email: null }]);
  });

  test('an OIDC token for another audience is rejected', async () => {
    const answer = await shownFor(await oidc.signIn(OWNER, 'https://other.example'));
    expect([answer.status, answer.json?.['detail']]).toEqual([401, 'The token is for another audience (aud).']);
  });

  test('an OIDC token from another issuer is rejected', async () => {
    const token = await oidc.signIn(OWNER, AUDIENCE);
    const other = await startTestApi({
      natsUrl: nats.url,
      provider: { jwksUrl: oidc.jwksUrl, issuer: `${oidc.issuer}/tenant` },
    });
    try {
      expect((await shownFor(token, other)).json?.['detail']).toBe('The token is from another issuer (iss).');
    } finally {
      await other.close();
    }
  });

  test('an expired OIDC token is rejected, in the cookie too', async () => {
    const token = await oidc.signIn(OWNER, AUDIENCE);
    let ahead = 0;
    const other = await startTestApi({
      natsUrl: nats.url,
      provider: { jwksUrl: oidc.jwksUrl },
      now: () => Date.now() + ahead,
    });
    try {
      expect((await shownFor(token, other)).status).toBe(200);
      ahead = 3_600_000 + 61_000;
      for (const headers of [asUser(token), asBrowser(cookieOf(token))]) {
        const answer = await call(other, 'GET', PATH, { headers });
        expect([answer.status, answer.json?.['detail']]).toEqual([401, 'The token has expired.']);
      }
    } finally {
      await other.close();
    }
  });

  test('OIDC tokens replace those under the secret', async () => {
    const answer = await shownFor(await tokenOf({ sub: OWNER, iss: oidc.issuer, aud: AUDIENCE }));
    expect([answer.status, answer.json?.['code']]).toEqual([401, 'unauthenticated']);
    expect(answer.json?.['detail']).toContain('RS256, ES256, EdDSA');
  });

  test('tokens are accepted after the provider changed its key, with another algorithm; those of the old key end', async () => {
    const before = await oidc.signIn(OWNER, AUDIENCE);
    expect((await shownFor(before)).status).toBe(200);
    await oidc.stop();
    expect((await shownFor(before)).status).toBe(200);
    await oidc.start('ES256');
    const after = await oidc.signIn(OWNER, AUDIENCE);
    await eventually(async () => (await shownFor(after)).status === 200);
    const old = await shownFor(before);
    expect([old.status, old.json?.['code']]).toEqual([401, 'unauthenticated']);
  });

  test('OIDC tokens may be signed with EdDSA', async () => {
    const edwards = await startOidc('EdDSA');
    const other = await startTestApi({
      natsUrl: nats.url,
      provider: { jwksUrl: edwards.jwksUrl, issuer: edwards.issuer },
    });
    try {
      expect((await shownFor(await edwards.signIn(OWNER, AUDIENCE), other)).status).toBe(200);
    } finally {
      await other.close();
      await edwards.stop();
    }
  });

  test('OIDC tokens are 502 while the provider was never reached, and accepted as soon as it is', async () => {
    const later = await startOidc('ES256');
    await later.stop();
    const other = await startTestApi({ natsUrl: nats.url, provider: { jwksUrl: later.jwksUrl } });
    try {
      const answer = await shownFor(await oidc.clientToken(AUDIENCE), other);
      expect([answer.status, answer.json?.['code']]).toEqual([502, 'upstream_unavailable']);
      await later.start('ES256');
      const token = await later.signIn(OWNER, AUDIENCE);
      await eventually(async () => (await shownFor(token, other)).status === 200);
    } finally {
      await other.close();
      await later.stop();
    }
  });
});
