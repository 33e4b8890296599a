// The requests that run before the scripts of a page: which address starts which, and that each answer is
// taken once, by the very same request.
import { afterEach, beforeEach, expect, it, vi } from 'vitest';

const ORIGIN = 'http://127.0.0.1:8080';
let asked: string[] = [];

beforeEach(() => {
  asked = [];
  vi.resetModules();
  vi.stubGlobal('fetch', (address: string, { headers }: { headers: Record<string, string> }) => {
    asked.push(`${headers['X-Org-Id'] ?? '-'} ${address.slice(ORIGIN.length)}`);
    return Promise.resolve(new Response('{}'));
  });
});
afterEach(() => {
  vi.unstubAllGlobals();
  vi.useRealTimers();
});

/** Returns the module in its first state, as a page has it. */
const fresh = () => import('../../../api/portal/web/client/early_requests.ts');
const get = (path: string, org_id?: string): Request =>
  new Request(ORIGIN + path, org_id === undefined ? {} : { headers: { 'X-Org-Id': org_id } });

it.each([
  ['/o/org_a/traces/trc_1', ['- /v1/session', 'org_a /v1/traces/trc_1/outline']],
  ['/o/org_a/traces/trc_1/', ['- /v1/session', 'org_a /v1/traces/trc_1/outline']],
  ['/o/org%20a/traces/run%3A1', ['- /v1/session', 'org a /v1/traces/run%3A1/outline']],
  ['/o/org_a/traces', ['- /v1/session']],
  ['/o/org_a/traces/trc_1/more', ['- /v1/session']],
  ['/', ['- /v1/session']],
  ['/login', []],
  ['/operator', []],
  ['/operator/orgs', []],
])('the address %s asks for %j', async (pathname, wanted) => {
  const { startEarly } = await fresh();
  startEarly({ origin: ORIGIN, pathname });
  expect(asked).toEqual(wanted);
});

it('an answer is taken once, and only by a request of the same organization, path and method', async () => {
  const { startEarly, takeEarly } = await fresh();
  startEarly({ origin: ORIGIN, pathname: '/o/org_a/traces/trc_1' });
  const path = '/v1/traces/trc_1/outline';
  expect(takeEarly(get(path, 'org_b'))).toBeNull();
  expect(takeEarly(get(path))).toBeNull();
  expect(takeEarly(get(`${path}?limit=1`, 'org_a'))).toBeNull();
  expect(takeEarly(new Request(ORIGIN + path, { method: 'POST', headers: { 'X-Org-Id': 'org_a' } }))).toBeNull();
  expect(await (await takeEarly(get(path, 'org_a')))?.text()).toBe('{}');
  expect(takeEarly(get(path, 'org_a'))).toBeNull();
});

it('an answer that nobody takes within a minute is dropped', async () => {
  vi.useFakeTimers();
  const { startEarly, takeEarly } = await fresh();
  startEarly({ origin: ORIGIN, pathname: '/' });
  vi.advanceTimersByTime(60_001);
  expect(takeEarly(get('/v1/session'))).toBeNull();
});
