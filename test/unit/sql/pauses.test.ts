// Pauses of long work, and the restore of texts from cold storage that takes them.
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import type { BodyStatement, ClickHouse, Read } from '../../../sql/client/client.ts';
import { Pauses } from '../../../sql/client/pauses.ts';
import { unpackTexts } from '../../../sql/stores/cold_unpack.ts';

const NEVER = new AbortController().signal;
/** Longer than the work between two pauses may last, milliseconds. */
const LONG_MS = 6;

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['performance'] });
});
afterEach(() => {
  vi.useRealTimers();
});

/** Counts the turns of the event loop that begin from now on. */
function aClock(): { turns: number } {
  const clock = { turns: 0 };
  const count = () => {
    clock.turns += 1;
    if (clock.turns < 100) setImmediate(count);
  };
  setImmediate(count);
  return clock;
}

it('lets other work run once the work has lasted 5 ms, and not before', async () => {
  const pauses = new Pauses(NEVER);
  const clock = aClock();
  for (let step = 0; step < 1000; step += 1) await pauses.give();
  expect(clock.turns).toBe(0);
  vi.advanceTimersByTime(LONG_MS);
  await pauses.give();
  expect(clock.turns).toBe(1);
  await pauses.give();
  expect(clock.turns).toBe(1);
});

it('ends the work at its next pause when its caller disconnects', async () => {
  const gone = new AbortController();
  const pauses = new Pauses(gone.signal);
  gone.abort(new Error('disconnected'));
  await expect(pauses.give()).resolves.toBeUndefined();
  vi.advanceTimersByTime(LONG_MS);
  await expect(pauses.give()).rejects.toThrow('disconnected');
});

const PLACE = { partition: 0, log_index: 0, log_sub: 0 };
const STAGED = [1, 2, 3].map((log_seq) => ({ ...PLACE, log_seq, prompt: `text ${log_seq}`, response: '' }));

/** A store with three staged texts of one group. */
function aStore() {
  const inserts: string[] = [];
  let groups = 0;
  const client = {
    rows({ name }: Read) {
      if (name === 'cold_group_texts') return Promise.resolve(STAGED);
      groups += 1;
      return Promise.resolve(groups === 1 ? [{ ...PLACE, log_seq: 3, started_ms: 0, span_id: 's' }] : []);
    },
    execute({ name }: BodyStatement) {
      inserts.push(name);
      return Promise.resolve({ written_rows: STAGED.length });
    },
  };
  return { client: client as unknown as ClickHouse, inserts };
}

it('a restore lets other work run between texts that take long to split', async () => {
  const { client, inserts } = aStore();
  const turns: number[] = [];
  const clock = aClock();
  const wordsOf = (prompt: string) => {
    turns.push(clock.turns);
    vi.advanceTimersByTime(LONG_MS);
    return { words: prompt, dl: 2 };
  };
  const task = { task: 't', org_id: 'org_a' };
  expect(await unpackTexts(client, task, { restoredOn: 1, dropOn: 2 }, wordsOf, NEVER)).toBe(3);
  expect(turns).toEqual([0, 1, 2]);
  expect(inserts).toEqual(['cold_unpack']);
});

it('a restore that is stopped while it splits texts inserts none of the group', async () => {
  const { client, inserts } = aStore();
  const stop = new AbortController();
  const wordsOf = (prompt: string) => {
    vi.advanceTimersByTime(LONG_MS);
    stop.abort(new Error('stopped'));
    return { words: prompt, dl: 2 };
  };
  const task = { task: 't', org_id: 'org_a' };
  await expect(unpackTexts(client, task, { restoredOn: 1, dropOn: 2 }, wordsOf, stop.signal)).rejects.toThrow(
    'stopped',
  );
  expect(inserts).toEqual([]);
});
