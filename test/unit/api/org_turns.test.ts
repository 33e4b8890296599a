// Turns of slow requests: how many run and wait, for how long, and what happens to callers that
// disconnect.
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { OrgTurns } from '../../../api/http/org_turns.ts';

const BOUNDS = { totalMax: 4, orgMax: 3, orgOpenMax: 5, waitMsMax: 2000 };
const NEVER = new AbortController().signal;
const turn = () => new Promise((resolve) => setImmediate(resolve));

/** Tasks that run until the test ends them. */
function aDesk() {
  const turns = new OrgTurns('searches', BOUNDS);
  const running: { org: string; end: () => void }[] = [];
  const begin = (org: string, signal = NEVER): Promise<string> =>
    turns.run(org, signal, async () => {
      await new Promise<void>((resolve) => running.push({ org, end: resolve }));
      return org;
    });
  const orgs = (): string[] => running.map(({ org }) => org);
  const end = async (org: string): Promise<void> => {
    const at = running.findIndex((task) => task.org === org);
    running.splice(at, 1)[0]?.end();
    await turn();
  };
  return { begin, orgs, end };
}

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
});
afterEach(() => {
  vi.useRealTimers();
});

it('leaves a place for other organizations while slow tasks of one wait', async () => {
  const { begin, orgs, end } = aDesk();
  const tasks = [...Array.from({ length: BOUNDS.orgOpenMax }, () => begin('org_a')), begin('org_b')];
  await turn();
  expect(orgs()).toEqual(['org_a', 'org_a', 'org_a', 'org_b']);
  await end('org_b');
  // The free place is not for a fourth task of the same organization.
  expect(orgs()).toEqual(['org_a', 'org_a', 'org_a']);
  for (let left = BOUNDS.orgOpenMax; left > 0; left -= 1) await end('org_a');
  await expect(Promise.all(tasks)).resolves.toHaveLength(tasks.length);
});

it('rejects a task at once with 429 and Retry-After when as many of its organization run or wait as may', async () => {
  const { begin, orgs, end } = aDesk();
  const tasks = Array.from({ length: BOUNDS.orgOpenMax }, () => begin('org_a'));
  await expect(begin('org_a')).rejects.toMatchObject({
    code: 'rate_limited',
    detail:
      'This organization has 5 searches in progress or waiting in this process. Retry after the number of seconds in Retry-After.',
    headers: { 'Retry-After': '1' },
  });
  const other = begin('org_b');
  await turn();
  expect(orgs()).toContain('org_b');
  await end('org_b');
  await other;
  await end('org_a');
  const again = begin('org_a');
  for (let left = BOUNDS.orgOpenMax; left > 0; left -= 1) await end('org_a');
  await expect(Promise.all([...tasks, again])).resolves.toHaveLength(BOUNDS.orgOpenMax + 1);
});

it('forgets a waiting task whose caller disconnects, and gives its place among the waiting to another', async () => {
  const { begin, orgs, end } = aDesk();
  const gone = new AbortController();
  const running = Array.from({ length: BOUNDS.orgMax }, () => begin('org_a'));
  const waiting = begin('org_a', gone.signal);
  const last = begin('org_a');
  gone.abort(new Error('disconnected'));
  await expect(waiting).rejects.toThrow('disconnected');
  const added = begin('org_a');
  for (let ended = 0; ended < BOUNDS.orgMax; ended += 1) await end('org_a');
  await Promise.all(running);
  expect(orgs()).toEqual(['org_a', 'org_a']);
  await end('org_a');
  await end('org_a');
  await Promise.all([last, added]);
});

it('rejects a task with 429 when there is no place within the bound of a wait, but never one that runs', async () => {
  const { begin, orgs, end } = aDesk();
  const running = Array.from({ length: BOUNDS.orgMax }, () => begin('org_a'));
  const waiting = begin('org_a');
  const refused = expect(waiting).rejects.toMatchObject({
    code: 'rate_limited',
    detail:
      'There was no place for this request within 2 seconds: too many searches. Retry after the number of seconds in Retry-After.',
    headers: { 'Retry-After': '1' },
  });
  await turn();
  vi.advanceTimersByTime(BOUNDS.waitMsMax);
  await refused;
  expect(orgs()).toHaveLength(BOUNDS.orgMax);
  vi.advanceTimersByTime(10 * BOUNDS.waitMsMax);
  for (let ended = 0; ended < BOUNDS.orgMax; ended += 1) await end('org_a');
  await expect(Promise.all(running)).resolves.toHaveLength(BOUNDS.orgMax);
});

it('releases the place of a task that fails', async () => {
  const turns = new OrgTurns('searches', BOUNDS);
  for (let times = 0; times < 2 * BOUNDS.orgOpenMax; times += 1)
    await expect(turns.run('org_a', NEVER, () => Promise.reject(new Error('broke')))).rejects.toThrow('broke');
  await expect(turns.run('org_a', NEVER, () => Promise.resolve(1))).resolves.toBe(1);
});
