// Texts without document numbers get them and their postings, each once, whatever happens between two
// statements: the leader dies, parts are merged, changed and emptied.
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type ATextRow, type Leader, openMover, type TestMover } from './a_mover.ts';

const WORDS = ['to', 'be', 'or', 'not', 'alpha', 'beta', 'gamma', '東京'];
const WEEKS = ['2026-06-01', '2026-06-08'];

let mover: TestMover;

beforeAll(async () => {
  mover = await openMover();
}, 60_000);
afterAll(() => mover.close());
beforeEach(async () => {
  for (const table of ['span_texts', 'span_texts_recent', 'span_words'])
    await mover.database.run(`TRUNCATE TABLE ${table}`);
  const texts = Array.from({ length: 300 }, (_, n): ATextRow => ({
    org_id: `org_${n % 3}`,
    span_id: `s${n}`,
    prompt:
      n % 10 === 9 ? '' : Array.from({ length: 1 + (n % 7) }, (_word, at) => WORDS[(n * 3 + at * at) % 8]).join(' '),
    drop_on: WEEKS[n % 2] ?? '',
    log_seq: n,
  }));
  for (const from of [0, 150]) await mover.insert('span_texts', texts.slice(from, from + 150));
});

const mutate = (change: string): Promise<string> =>
  mover.database.run(`ALTER TABLE span_texts ${change} SETTINGS mutations_sync = 1`);

/** Number of steps until the numbers are being set. */
async function stepUntilMutation(leader: Leader): Promise<void> {
  while (await leader.older.settled()) await leader.step();
}

async function expectDone(texts = 270): Promise<void> {
  const counts = await mover.database.run(
    "SELECT countIf(dl > 0 AND doc != 0), uniqExactIf(doc, doc != 0), countIf(dl = 0 AND doc = 0), countIf(words != '') FROM span_texts",
  );
  const [numbered, distinct, wordless, withWords] = counts.trim().split('\t').map(Number);
  expect({ numbered, distinct, withWords }).toEqual({ numbered: texts, distinct: texts, withWords: 0 });
  expect(wordless).toBeGreaterThan(0);
  const expected = await mover.expected();
  expect(expected.length).toBeGreaterThan(texts);
  expect(await mover.postings()).toEqual(expected);
}

describe('texts without document numbers', () => {
  it('get numbers and postings, and their words are emptied; texts without words are left alone', async () => {
    const leader = await mover.lead();
    await leader.finish();
    await expectDone();
    expect(await mover.orphans()).toBe(0);
    const look = await leader.step();
    expect(look).toBe('idle');
  }, 60_000);

  it('are taken a week after the other beginning with the newest, in slices of a segment', async () => {
    const leader = await mover.lead();
    const parts = await leader.older.olderParts();
    expect(parts.map(({ texts }) => texts).reduce((sum, texts) => sum + texts)).toBe(270);
    const weeks = parts.map(({ name }) => name.slice(0, 8));
    expect(weeks).toEqual(weeks.toSorted().reverse());
    const [part] = parts;
    if (part === undefined) throw new Error('there are parts');
    const near = (1n << 16n) - 10n;
    const slices = await leader.older.slices({ ...part, first: near }, 7);
    expect(slices.length).toBeGreaterThan(4);
    for (const { from, until } of slices) expect((until - 1n) >> 16n).toBe(from >> 16n);
  }, 60_000);

  // Two steps of the sweep, a look, four slices, and the mutation, for which the last ones wait.
  it.each([3, 4, 6, 7, 8, 9, 10])(
    'are found once each if the leader dies after %i steps',
    async (steps) => {
      const killed = await mover.lead();
      for (let step = 0; step < steps; step += 1) await killed.step();
      await (await mover.lead()).finish();
      await expectDone();
      await (await mover.lead()).finish();
      expect(await mover.orphans()).toBe(0);
    },
    60_000,
  );

  it.each([
    ['merged', 'OPTIMIZE TABLE span_texts FINAL'],
    ['renamed', 'ALTER TABLE span_texts UPDATE cost_usd = 1 WHERE log_seq % 2 = 0 SETTINGS mutations_sync = 1'],
    ['masked in part', 'DELETE FROM span_texts WHERE log_seq % 30 = 1'],
    ['emptied in part', 'ALTER TABLE span_texts DELETE WHERE log_seq % 30 = 1 SETTINGS mutations_sync = 1'],
  ])(
    'are found once each if their parts are %s between two statements',
    async (_what, statement) => {
      for (const steps of [4, 8]) {
        const leader = await mover.lead();
        for (let step = 0; step < steps; step += 1) await leader.step();
        await mover.database.run(statement);
      }
      const leader = await mover.lead();
      await leader.finish();
      await expectDone(statement.includes('DELETE') ? 260 : 270);
      // What was masked is in projections until a merge, and so are its places.
      await mutate('APPLY DELETED MASK');
      const next = await mover.lead();
      await next.finish();
      expect(await mover.orphans()).toBe(0);
    },
    60_000,
  );

  it('keep the numbers of one mutation if others run together with it', async () => {
    const leader = await mover.lead();
    await mover.database.run('SYSTEM STOP MERGES span_texts');
    await mover.database.run(
      'ALTER TABLE span_texts UPDATE cost_usd = 1 WHERE log_seq % 2 = 0 SETTINGS mutations_sync = 0',
    );
    await mover.database.run('ALTER TABLE span_texts DELETE WHERE log_seq % 30 = 1 SETTINGS mutations_sync = 0');
    await stepUntilMutation(leader);
    await mover.database.run('SYSTEM START MERGES span_texts');
    await leader.finish();
    await expectDone(260);
    await (await mover.lead()).finish();
    expect(await mover.orphans()).toBe(0);
  }, 60_000);

  it('get no number by the mutation of a former leader that begins after a new one took over', async () => {
    const former = await mover.lead();
    await mover.database.run('SYSTEM STOP MERGES span_texts');
    await stepUntilMutation(former);
    const next = await mover.lead();
    // The sweep and the next batch wait for it.
    expect(await next.step()).toBe('idle');
    await mover.database.run('SYSTEM START MERGES span_texts');
    await mover.settled();
    expect(await mover.database.run('SELECT countIf(doc != 0) FROM span_texts')).toBe('0\n');
    await next.finish();
    await expectDone();
    expect(await mover.orphans()).toBe(0);
  }, 60_000);

  it('that come back from cold storage later are taken by a later look', async () => {
    const leader = await mover.lead();
    await leader.finish();
    await mover.insert('span_texts', [{ span_id: 'restored', prompt: 'to be restored', log_seq: 1000 }]);
    await leader.finish();
    await expectDone(271);
  }, 60_000);
});
