// The login of a browser at an OIDC provider, against a real one: how it begins, whom it logs in, and how it is refused.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startTestNats, type TestNats } from '../../support/nats.ts';
import { CLIENT, startOidc, type TestOidc } from '../../support/oidc.ts';
import { type Answer, call, ORG, startTestApi, type TestApi } from './an_api.ts';

const PUBLIC_URL = 'https://portal.example';
const CALLBACK = `${PUBLIC_URL}/v1/session/oidc/callback`;
const OWNER = 'user_local';
const NOBODY = { 'X-Org-Api-Key': undefined, 'X-Org-Id': undefined };

let nats: TestNats;
let oidc: TestOidc;
let api: TestApi;
let ahead = 0;

beforeAll(async () => {
  nats = await startTestNats();
  oidc = await startOidc('ES256', [CALLBACK]);
  api = await startTestApi({
    natsUrl: nats.url,
    provider: { jwksUrl: oidc.jwksUrl, issuer: oidc.issuer, audience: 'https://millrace.example' },
    oidc: { ...CLIENT, public_url: PUBLIC_URL },
    now: () => Date.now() + ahead,
  });
});
afterAll(async () => {
  await api.close();
  await oidc.stop();
  await nats.remove();
});

const visit = async (path: string, cookie = ''): Promise<Answer> => {
  const response = await fetch(api.url + path, { redirect: 'manual', headers: cookie === '' ? {} : { cookie } });
  return { status: response.status, headers: response.headers, text: await response.text(), json: null };
};
const cookiesOf = ({ headers }: Answer): string[] => headers.getSetCookie();
const valueOf = (answer: Answer, name: string): string =>
  cookiesOf(answer)
    .map((cookie) => cookie.split(';')[0] ?? '')
    .find((cookie) => cookie.startsWith(`${name}=`)) ?? '';
const locationOf = ({ headers }: Answer): string => headers.get('location') ?? '';

/** Begins a login. @returns the address at the provider, and the cookie of the attempt */
async function begin(to = ''): Promise<{ address: string; cookie: string }> {
  const answer = await visit(`/v1/session/oidc${to === '' ? '' : `?to=${encodeURIComponent(to)}`}`);
  expect(answer.status).toBe(302);
  return { address: locationOf(answer), cookie: valueOf(answer, 'svc_sign_in') };
}

/** Logs in at the provider. @returns path and query of the callback */
async function back(address: string, login: string): Promise<string> {
  const url = await oidc.walk(address, login);
  expect(url.startsWith(CALLBACK)).toBe(true);
  return url.slice(PUBLIC_URL.length);
}

test('GET /v1/about names the login at the provider', async () => {
  expect((await call(api, 'GET', '/v1/about')).json?.['data']).toMatchObject({ login: ['oidc', 'token'] });
});

test('the login asks the provider with code, PKCE, state and nonce, and keeps them in a sealed cookie', async () => {
  const answer = await visit('/v1/session/oidc');
  const params = new URL(locationOf(answer)).searchParams;
  expect(locationOf(answer).startsWith(oidc.issuer)).toBe(true);
  expect(Object.fromEntries(params)).toMatchObject({
    response_type: 'code',
    client_id: CLIENT.client_id,
    redirect_uri: CALLBACK,
    code_challenge_method: 'S256',
  });
  const [cookie = ''] = cookiesOf(answer);
  const [value = '', ...attributes] = cookie.split('; ');
  expect(attributes).toEqual(['Path=/v1/session/oidc', 'Max-Age=600', 'HttpOnly', 'SameSite=Lax']);
  expect(value).not.toContain(params.get('state') ?? 'state');
  expect(answer.headers.get('cache-control')).toBe('no-store');
});

test('a person who logged in has a session of 12 hours with their address, and lands where they wanted to', async () => {
  const { address, cookie } = await begin(`/o/${ORG}/traces?outcome=error`);
  const answer = await visit(await back(address, OWNER), cookie);
  expect([answer.status, locationOf(answer)]).toEqual([302, `/o/${ORG}/traces?outcome=error`]);
  const session = cookiesOf(answer).find((one) => one.startsWith('svc_session=')) ?? '';
  expect(session.split('; ').slice(1)).toEqual(['Path=/', 'Max-Age=43200', 'HttpOnly', 'SameSite=Strict']);
  const read = await call(api, 'GET', '/v1/session', {
    headers: { ...NOBODY, Cookie: valueOf(answer, 'svc_session') },
  });
  expect(read.json?.['data']).toMatchObject({
    user_id: OWNER,
    email: `${OWNER}@example.com`,
    orgs: [{ org_id: ORG, role: 'owner' }],
  });
  // The token is one of the service and no bearer token.
  const token = valueOf(answer, 'svc_session').slice('svc_session='.length);
  const asBearer = await call(api, 'GET', '/v1/session', { headers: { ...NOBODY, Authorization: `Bearer ${token}` } });
  expect(asBearer.status).toBe(401);
});

test.each(['//other.example/', '/\\other.example/', 'https://other.example/', 'javascript:alert(1)'])(
  'a login that was asked to lead to %s leads to the first page',
  async (to) => {
    const { address, cookie } = await begin(to);
    const answer = await visit(await back(address, OWNER), cookie);
    expect(locationOf(answer)).toBe('/');
  },
);

test('a callback without the cookie, with another state, or after ten minutes leads to the login page', async () => {
  const first = await begin();
  const other = await begin();
  const path = await back(first.address, OWNER);
  const refused = ['/login?refused=expired', ''];
  for (const cookie of ['', other.cookie, 'svc_sign_in=v1.forged']) {
    const answer = await visit(path, cookie);
    expect([locationOf(answer), valueOf(answer, 'svc_session')]).toEqual(refused);
  }
  ahead = 601_000;
  try {
    expect(locationOf(await visit(path, first.cookie))).toBe(refused[0]);
  } finally {
    ahead = 0;
  }
});

test('a code works once, and not for another login', async () => {
  const { address, cookie } = await begin();
  const path = await back(address, OWNER);
  expect(locationOf(await visit(path, cookie))).toBe('/');
  expect(locationOf(await visit(path, cookie))).toBe('/login?refused=failed');
  // A stolen code in the login of somebody else lacks that login's PKCE verifier.
  const victim = await begin();
  const thief = await begin();
  const code = new URL(PUBLIC_URL + (await back(victim.address, OWNER))).searchParams.get('code') ?? '';
  const state = new URL(thief.address).searchParams.get('state') ?? '';
  const answer = await visit(
    `/v1/session/oidc/callback?${new URLSearchParams({ code, state }).toString()}`,
    thief.cookie,
  );
  expect([locationOf(answer), valueOf(answer, 'svc_session')]).toEqual(['/login?refused=failed', '']);
});

test('a person whom the provider refuses, and a provider that does not answer, lead to the login page', async () => {
  const { address, cookie } = await begin();
  const state = new URL(address).searchParams.get('state') ?? '';
  const denied = await visit(`/v1/session/oidc/callback?error=access_denied&state=${state}`, cookie);
  expect(locationOf(denied)).toBe('/login?refused=denied');
  const other = await startTestApi({
    natsUrl: nats.url,
    provider: { jwksUrl: 'http://127.0.0.1:9/jwks', issuer: 'http://127.0.0.1:9' },
    oidc: { ...CLIENT, public_url: PUBLIC_URL },
  });
  try {
    const answer = await fetch(`${other.url}/v1/session/oidc`, { redirect: 'manual' });
    expect(answer.headers.get('location')).toBe('/login?refused=failed');
  } finally {
    await other.close();
  }
});

test('a service that is no client of a provider has no such login', async () => {
  const plain = await startTestApi({ natsUrl: nats.url });
  try {
    expect((await call(plain, 'GET', '/v1/session/oidc')).json?.['code']).toBe('not_found');
    expect((await call(plain, 'GET', '/v1/about')).json?.['data']).toMatchObject({ login: ['ticket', 'token'] });
  } finally {
    await plain.close();
  }
});
