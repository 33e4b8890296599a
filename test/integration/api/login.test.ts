// Login by ticket on a local service: who may use a ticket, how often and how long, and what its session token is worth.
import { request } from 'node:http';
import { SignJWT } from 'jose';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { makeTicket } from '../../../ops/exchange/login_tickets.ts';
import { startTestNats, type TestNats } from '../../support/nats.ts';
import { ADMIN_TOKEN, asUser, call, JWT_SECRET, ORG, startTestApi, type TestApi, tokenOf } from './an_api.ts';

const PATH = '/v1/session/ticket';
const NOBODY = { 'X-Org-Api-Key': undefined, 'X-Org-Id': undefined };
const PAGE = { ...NOBODY, 'Sec-Fetch-Site': 'same-origin' };
const DAY_S = 86_400;

let nats: TestNats;
let api: TestApi;
let ahead = 0;
const now = (): number => Date.now() + ahead;
beforeAll(async () => {
  nats = await startTestNats();
  api = await startTestApi({ natsUrl: nats.url, now });
});
afterAll(async () => {
  await api.close();
  await nats.remove();
});

const use = (ticket: string, headers: Record<string, string | undefined> = PAGE, by = api) =>
  call(by, 'POST', PATH, { body: { ticket }, headers });

/** Logs in with a new ticket and returns the token in the cookie. */
async function logIn(): Promise<string> {
  const answer = await use(await makeTicket(api.log, now()));
  return /^svc_session=([^;]+)/.exec(answer.headers.get('set-cookie') ?? '')?.[1] ?? '';
}

/** Sends a ticket with a Host header, which fetch does not allow to set. */
function useAtHost(ticket: string, host: string): Promise<number> {
  return new Promise((resolve, reject) => {
    const headers = { Host: host, 'Content-Type': 'application/json', 'Sec-Fetch-Site': 'same-origin' };
    request({ port: api.port, method: 'POST', path: PATH, headers }, (response) => {
      response.resume().on('end', () => {
        resolve(response.statusCode ?? 0);
      });
    })
      .on('error', reject)
      .end(JSON.stringify({ ticket }));
  });
}

describe('a login ticket', () => {
  test('a ticket logs in as the owner of the first organization for 30 days', async () => {
    const answer = await use(await makeTicket(api.log, now()));
    expect(answer.status).toBe(201);
    expect(answer.json?.['data']).toMatchObject({ user_id: 'user_local', orgs: [{ org_id: ORG, role: 'owner' }] });
    expect(answer.headers.get('cache-control')).toBe('no-store');
    const [, ...attributes] = (answer.headers.get('set-cookie') ?? '').split('; ');
    expect(attributes).toEqual(['Path=/', `Max-Age=${30 * DAY_S}`, 'HttpOnly', 'SameSite=Strict']);
  });

  test('a ticket logs in once', async () => {
    const ticket = await makeTicket(api.log, now());
    expect((await use(ticket)).status).toBe(201);
    const again = await use(ticket);
    expect([again.status, again.json?.['code']]).toEqual([401, 'unauthenticated']);
    expect(again.headers.get('set-cookie')).toBeNull();
  });

  test('a ticket that is used many times at once, in several processes, logs in once', async () => {
    const second = await startTestApi({ natsUrl: nats.url, now });
    try {
      const ticket = await makeTicket(api.log, now());
      const answers = await Promise.all(
        Array.from({ length: 20 }, (_, at) => use(ticket, PAGE, at % 2 ? api : second)),
      );
      expect(answers.map(({ status }) => status).sort()).toEqual([201, ...Array.from({ length: 19 }, () => 401)]);
    } finally {
      await second.close();
    }
  });

  test('a ticket expires after ten minutes', async () => {
    const tickets = [await makeTicket(api.log, now()), await makeTicket(api.log, now())];
    try {
      ahead = 9 * 60_000;
      expect((await use(tickets[0] ?? '')).status).toBe(201);
      ahead = 10 * 60_000 + 1;
      expect((await use(tickets[1] ?? '')).status).toBe(401);
    } finally {
      ahead = 0;
    }
  });

  test('a ticket is stored as its digest only', async () => {
    const ticket = await makeTicket(api.log, now());
    const bucket = await api.log.bucket('login_tickets');
    let stored = '';
    for await (const key of await bucket.keys()) stored += `${key} ${(await bucket.get(key))?.string() ?? ''}\n`;
    expect(stored).toContain('user_local');
    expect(stored).not.toContain(ticket);
  });

  test('a ticket is refused for a Host that is not a name of this machine, and stays usable', async () => {
    const ticket = await makeTicket(api.log, now());
    for (const host of [
      'evil.example',
      `evil.example:${api.port}`,
      '127.0.0.1.evil.example',
      '10.0.0.1',
      'localhost.evil',
    ])
      expect([host, await useAtHost(ticket, host)]).toEqual([host, 403]);
    expect(await useAtHost(ticket, `localhost:${api.port}`)).toBe(201);
    expect(await useAtHost(await makeTicket(api.log, now()), '[::1]:8080')).toBe(201);
  });

  test('a ticket is refused to pages of other origins, and stays usable', async () => {
    const ticket = await makeTicket(api.log, now());
    for (const headers of [
      {},
      { 'Sec-Fetch-Site': 'cross-site' },
      { 'Sec-Fetch-Site': 'same-site' },
      { Origin: 'https://evil.example' },
      { Origin: 'http://127.0.0.1:1' },
    ] as const)
      expect([headers, (await use(ticket, { ...NOBODY, ...headers })).status]).toEqual([headers, 403]);
    expect((await use(ticket, { ...NOBODY, Origin: api.url })).status).toBe(201);
  });

  test.each(['', 'short', 'x'.repeat(44), `${'x'.repeat(42)}/`])(
    'a ticket that is none is invalid: %j',
    async (ticket) => {
      const answer = await use(ticket);
      expect([answer.status, answer.json?.['code']]).toEqual([422, 'invalid_request']);
      expect(answer.json?.['detail']).toContain('ticket: must be the 43 characters after #');
    },
  );

  test('no ticket logs in in production, nor with the key set of a provider', async () => {
    for (const more of [{ production: true }, { provider: { jwksUrl: 'http://127.0.0.1:9/keys' } }]) {
      const other = await startTestApi({ natsUrl: nats.url, ...more });
      try {
        const ticket = await makeTicket(api.log, now());
        const refused = await use(ticket, PAGE, other);
        expect([refused.status, refused.json?.['code']]).toEqual([403, 'forbidden']);
        const headers = { ...NOBODY, Cookie: `svc_session=${await logIn()}` };
        expect((await call(other, 'GET', '/v1/session', { headers })).status).not.toBe(200);
        expect((await call(other, 'GET', '/v1/about', { headers })).json?.['data']).toMatchObject({ login: ['token'] });
      } finally {
        await other.close();
      }
    }
    expect((await call(api, 'GET', '/v1/about')).json?.['data']).toMatchObject({ login: ['ticket', 'token'] });
  });
});

describe('a session token', () => {
  test('a session token counts in the cookie, and never as a bearer token', async () => {
    const token = await logIn();
    const byCookie = { ...NOBODY, Cookie: `svc_session=${token}` };
    const shown = await call(api, 'GET', '/v1/session', { headers: byCookie });
    expect([shown.status, shown.json?.['data']]).toMatchObject([200, { user_id: 'user_local' }]);
    expect((await call(api, 'GET', `/orgs/${ORG}`, { headers: byCookie })).status).toBe(200);
    for (const path of ['/v1/session', `/orgs/${ORG}`, '/v1/traces'])
      expect([path, (await call(api, 'GET', path, { headers: asUser(token) })).status]).toEqual([path, 401]);
  });

  test('a session token that another key signed is refused', async () => {
    const forged = await new SignJWT({ sub: 'user_local', iss: 'millrace', exp: Math.floor(Date.now() / 1000) + 60 })
      .setProtectedHeader({ alg: 'HS256', typ: 'svc-session+jwt' })
      .sign(new TextEncoder().encode(JWT_SECRET));
    for (const headers of [{ ...NOBODY, Cookie: `svc_session=${forged}` }, asUser(forged)])
      expect((await call(api, 'GET', '/v1/session', { headers })).status).toBe(401);
  });

  test('a session token ends after 30 days, in every process', async () => {
    const headers = { ...NOBODY, Cookie: `svc_session=${await logIn()}` };
    const second = await startTestApi({ natsUrl: nats.url, now });
    try {
      ahead = (30 * DAY_S - 60) * 1000;
      expect((await call(second, 'GET', '/v1/session', { headers })).status).toBe(200);
      ahead = (30 * DAY_S + 60) * 1000;
      const ended = await call(second, 'GET', '/v1/session', { headers });
      expect([ended.status, ended.json?.['detail']]).toEqual([401, 'The session has expired.']);
    } finally {
      ahead = 0;
      await second.close();
    }
  });

  test('a session by cookie can be begun anew, and lasts no longer', async () => {
    const headers = { ...PAGE, Cookie: `svc_session=${await logIn()}` };
    const anew = await call(api, 'POST', '/v1/session', { headers });
    expect(anew.status).toBe(201);
    expect(Number(/Max-Age=(\d+)/.exec(anew.headers.get('set-cookie') ?? '')?.[1])).toBeLessThanOrEqual(30 * DAY_S);
  });

  test('every answer to a cookie forbids storing it, errors too', async () => {
    const headers = { ...NOBODY, Cookie: `svc_session=${await logIn()}`, 'X-Org-Id': ORG };
    for (const path of ['/v1/session', `/orgs/${ORG}`, '/v1/nowhere', '/orgs/org_of_others', '/v1/judges'])
      expect([path, (await call(api, 'GET', path, { headers })).headers.get('cache-control')]).toEqual([
        path,
        'no-store',
      ]);
    expect((await call(api, 'GET', '/v1/judges')).headers.get('cache-control')).toBeNull();
  });
});

describe('the rate of the portal', () => {
  test("requests of a page take from the person's own rate, others from the organization's", async () => {
    const cookie = { ...NOBODY, 'X-Org-Id': ORG, Cookie: `svc_session=${await logIn()}` };
    const limitOf = async (headers: Record<string, string | undefined>) =>
      (await call(api, 'GET', '/v1/judges', { headers })).headers.get('ratelimit-limit');
    // The first organization has no limit.
    expect(await limitOf({})).toBeNull();
    expect(await limitOf(cookie)).toBeNull();
    expect(await limitOf({ ...cookie, 'Sec-Fetch-Site': 'same-site' })).toBeNull();
    expect(await limitOf({ ...cookie, 'Sec-Fetch-Site': 'same-origin' })).toBe('1200');
  });

  test('pages take nothing from the rate of an organization on the plan free, which admits 30 requests at once', async () => {
    const org_id = 'org_free';
    const headers = { ...NOBODY, Authorization: `Bearer ${ADMIN_TOKEN}` };
    const owner = { user_id: 'user_local', email: 'owner@example.com' };
    const body = { org_id, name: 'Free', plan_name: 'free', owner };
    expect((await call(api, 'POST', '/admin/orgs', { headers, body })).status).toBe(201);
    const cookie = { ...PAGE, 'X-Org-Id': org_id, Cookie: `svc_session=${await logIn()}` };
    const answers = await Promise.all(
      Array.from({ length: 100 }, () => call(api, 'GET', '/v1/judges', { headers: cookie })),
    );
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]));

    const token = await tokenOf({ sub: 'user_local' });
    const program = await call(api, 'GET', '/v1/judges', { headers: asUser(token, org_id) });
    expect([program.headers.get('ratelimit-limit'), program.headers.get('ratelimit-remaining')]).toEqual(['60', '29']);
  });
});
