// The agent registry of two API processes on one nats-server. Importing this module starts them
// before the tests of a file and stops them afterwards.
import { hash } from 'node:crypto';
import { afterAll, beforeAll, expect } from 'vitest';
import { startTestNats, type TestNats } from '../../support/nats.ts';
import { type Answer, call, ORG, startTestApi, type TestApi } from '../api/an_api.ts';

export let nats: TestNats;
export let one: TestApi;
export let two: TestApi;

beforeAll(async () => {
  nats = await startTestNats();
  one = await startTestApi({ natsUrl: nats.url });
  two = await startTestApi({ natsUrl: nats.url });
});

afterAll(async () => {
  await one.close();
  await two.close();
  await nats.remove();
});

export const AGENTS = `/orgs/${ORG}/agents`;
export const codeOf = (answer: Answer): unknown[] => [answer.status, answer.json?.['code'] ?? null];
export const dataOf = (answer: Answer): Record<string, unknown> => answer.json?.['data'] as Record<string, unknown>;
export const rowsOf = (answer: Answer): Record<string, unknown>[] => answer.json?.['data'] as Record<string, unknown>[];

export async function aToken(api = one): Promise<string> {
  const answer = await call(api, 'POST', `${AGENTS}/register-tokens`);
  expect(answer.status).toBe(201);
  return String(dataOf(answer)['register_token']);
}

export const register = (
  body: Record<string, unknown>,
  api = one,
  headers: Record<string, string> = {},
): Promise<Answer> => call(api, 'POST', `${AGENTS}/register`, { body, headers });

export async function registered(body: Record<string, unknown>): Promise<Record<string, unknown>> {
  const answer = await register({ register_token: await aToken(), ...body });
  expect([answer.status, answer.text]).toEqual([201, expect.stringContaining('"is_new":true') as string]);
  return dataOf(answer);
}

export async function aKey(scopes: string[]): Promise<Record<string, string>> {
  const made = await call(one, 'POST', `/orgs/${ORG}/api-keys`, { body: { name: 'k', scopes } });
  return { 'X-Org-Api-Key': String(made.json?.['raw_key']) };
}

/** Returns a token's record as stored in KV. */
export const tokenRecord = async (token: string) => {
  const kv = await one.log.bucket('register_tokens');
  const key = `${ORG}.${hash('sha256', token, 'hex')}`;
  const entry = await kv.get(key);
  return { kv, key, revision: entry?.revision ?? 0, record: entry?.json<Record<string, unknown>>() ?? {} };
};
