// Two API processes on one nats-server and, for each test, an organization whose owner is ann and
// which other persons with tokens join. Importing this module starts the processes before the tests
// of a file and stops them afterwards.
import { afterAll, beforeAll, beforeEach, expect } from 'vitest';
import { startTestNats, type TestNats } from '../../support/nats.ts';
import { eventually } from '../../support/wait.ts';
import { makeOrg } from '../a_tenant.ts';
import { ADMIN_TOKEN, type Answer, asUser, call, startTestApi, type TestApi, tokenOf } from './an_api.ts';

export const DAY_MS = 24 * 3_600_000;
export let nats: TestNats;
export let one: TestApi;
export let two: TestApi;
/** How far both processes' clocks are ahead, in ms. */
let aheadMs = 0;
export let org = '';
let serial = 0;

beforeAll(async () => {
  nats = await startTestNats();
  const now = () => Date.now() + aheadMs;
  one = await startTestApi({ natsUrl: nats.url, now });
  two = await startTestApi({ natsUrl: nats.url, now });
});

afterAll(async () => {
  await one.close();
  await two.close();
  await nats.remove();
});

export const operator = { Authorization: `Bearer ${ADMIN_TOKEN}` };

/** Returns the headers of a person whose sub is `name`, in the organization of the test. */
export async function as(
  name: string,
  email: string | null = `${name}@example.com`,
  of = org,
): Promise<Record<string, string | undefined>> {
  const exp = Math.floor((Date.now() + aheadMs) / 1000) + 3600;
  return asUser(await tokenOf(email === null ? { sub: name, exp } : { sub: name, email, exp }), of);
}

export async function send(
  name: string,
  method: string,
  path: string,
  body?: unknown,
  api: TestApi = one,
): Promise<Answer> {
  return call(api, method, `/orgs/${org}${path}`, { headers: await as(name), ...(body === undefined ? {} : { body }) });
}

export const dataOf = (answer: Answer) => answer.json?.['data'] as Record<string, unknown>;
export const said = (answer: Answer) => [answer.status, answer.json?.['code']];

/** Invites a person and accepts the invitation. */
export async function join(name: string, role: string): Promise<void> {
  const invited = await send('ann', 'POST', '/members', { email: `${name}@example.com`, role });
  expect(invited.status).toBe(201);
  expect((await send(name, 'POST', '/members/accept', { token: dataOf(invited)['token'] })).status).toBe(200);
}

export const rolesOf = async () =>
  Object.fromEntries(
    ((await send('ann', 'GET', '/members')).json?.['data'] as { user_id: string; role: string }[]).map(
      ({ user_id, role }) => [user_id, role],
    ),
  );

beforeEach(async () => {
  aheadMs = 0;
  org = `org_m${++serial}`;
  await makeOrg(one, { org_id: org });
  await eventually(async () => (await send('ann', 'GET', '', undefined, two)).status === 200, {
    what: 'the org at the other process',
  });
});

/** Sets the clocks of both processes ahead by `ms` until the next test. */
export function setClocksAhead(ms: number): void {
  aheadMs = ms;
}
