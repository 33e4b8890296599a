// A session lasts as long as its token, or as its cookie when the token has no expiry.
import { describe, expect, it } from 'vitest';
import { sessionRoutes } from '../../../api/control/sign_in/routes.ts';
import { session } from '../../../api/control/sign_in/schema.ts';
import { NOW_MS, NOW_S } from './an_issuer.ts';

const TOKEN = 'aGVhZGVy.cGF5bG9hZA.c2lnbmF0dXJl';
const routes = sessionRoutes({
  orgsOf: () => [],
  grantsOf: () => [],
  local: null,
  about: { version: '1.7.0', environment: 'development', login: ['token'], models: false, mail: false },
  secure: false,
  now: () => NOW_MS + 500,
});

async function ask(method: 'get' | 'post', expires_at: number | null) {
  const route = routes.find((one) => one.method === method);
  const credential = { kind: 'person', user_id: 'user_1', email: null, expires_at };
  const ctx = { credential, req: { headers: { authorization: `Bearer ${TOKEN}` } } };
  const answer = await route?.handler(ctx as never);
  if (answer === undefined || !('data' in answer)) throw new Error('no answer');
  return { shown: session.parse(answer.data), cookie: answer.headers?.['Set-Cookie'] };
}

describe('a session', () => {
  it.each([
    ['ten minutes', NOW_S + 600, 599],
    ['a moment', NOW_S - 4, 1],
  ])('a session ends with its token, after %s', async (_what, exp, maxAgeS) => {
    const { shown, cookie } = await ask('post', exp);
    expect(shown.expires_at).toBe(new Date(exp * 1000).toISOString());
    expect(cookie).toBe(`svc_session=${TOKEN}; Path=/; Max-Age=${maxAgeS}; HttpOnly; SameSite=Strict`);
    expect((await ask('get', exp)).shown).toEqual(shown);
  });

  it('a session of a token without an expiry lasts twelve hours; later requests do not know when it began', async () => {
    const { shown, cookie } = await ask('post', null);
    expect(shown.expires_at).toBe(new Date(NOW_MS + 12 * 3_600_000).toISOString());
    expect(cookie).toContain('; Max-Age=43199; ');
    expect((await ask('get', null)).shown.expires_at).toBeNull();
  });
});
