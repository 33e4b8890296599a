// Moves of texts: postings say what the texts say, a move that ended half-way is repeated, and parts
// may be renamed at any moment. Texts that are in span_texts already are left out, also when many
// others landed after the oldest of the moved ones.
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { createLogger } from '../../../ops/platform/logger.ts';
import { segmentsOf } from '../../../pipeline/landing/document_numbers.ts';
import { type PlaceStore, PlaceSweep } from '../../../pipeline/landing/place_sweep.ts';
import { arePosted, writePostings } from '../../../sql/stores/postings.ts';
import { eventually } from '../../support/wait.ts';
import { type Leader, openMover, type TestMover } from './a_mover.ts';

/** More positions than a statement may hold in a set. */
const LATER = 70_000;
const OTHER_WEEK = '2026-07-20';

let mover: TestMover;
let moves = 0;

beforeAll(async () => {
  mover = await openMover();
}, 60_000);
afterAll(() => mover.close());
beforeEach(async () => {
  for (const table of ['span_texts', 'span_texts_recent', 'span_words'])
    await mover.database.run(`TRUNCATE TABLE ${table}`);
});

/** Moves what is in span_texts_recent; returns the number of copied texts. */
async function move(leader: Leader, drop = true): Promise<number | undefined> {
  moves += 1;
  const moved = await leader.texts.move(await leader.numbered(), leader.epoch, `move-${moves}`);
  if (drop) await leader.texts.dropParts(moved?.parts ?? []);
  return moved?.copied;
}

const waiting = async (): Promise<number> => Number(await mover.database.run('SELECT count() FROM span_texts_recent'));

test('a move writes how often each text has each word, whatever its organization, part and week', async () => {
  await mover.insert('span_texts_recent', [
    { org_id: 'org_b', span_id: 'b1', prompt: 'to be or not to be', log_seq: 1 },
    { org_id: 'org_a', span_id: 'a1', prompt: 'be', log_seq: 2 },
    { org_id: 'org_a', span_id: 'none', prompt: '', log_seq: 3 },
    { org_id: 'org_a', span_id: 'a2', prompt: 'or not', drop_on: OTHER_WEEK, log_seq: 4 },
  ]);
  await mover.insert('span_texts_recent', [
    { org_id: 'org_a', span_id: 'often', prompt: `rare ${'often '.repeat(70_000)}rare`, log_seq: 5 },
    { org_id: 'org_c', span_id: 'c1', prompt: 'not to be', log_seq: 6 },
  ]);
  const leader = await mover.lead();
  expect(await move(leader)).toBe(6);
  await mover.insert('span_texts_recent', [{ span_id: 'later', prompt: 'to be', log_seq: 7 }]);
  expect(await move(leader)).toBe(1);
  const expected = await mover.expected();
  expect(expected).toHaveLength(4 + 1 + 2 + 2 + 3 + 2);
  expect(expected.filter((line) => line.endsWith(' 65535'))).toHaveLength(1);
  expect(await mover.postings()).toEqual(expected);
  expect(await waiting()).toBe(0);
  // A merge joins the lists of a word, and keeps each place beside its number.
  await mover.database.run('OPTIMIZE TABLE span_words FINAL');
  expect(await mover.postings()).toEqual(expected);
  expect(await mover.database.run("SELECT count(), uniqExact(doc), countIf(words != '') FROM span_texts")).toBe(
    '7\t7\t0\n',
  );
  expect(await mover.orphans()).toBe(0);
}, 60_000);

test('a move of more texts than a segment holds numbers each of them once', async () => {
  await mover.database.run(
    `INSERT INTO span_texts_recent (org_id, span_id, prompt, words, dl, drop_on, log_seq)
     SELECT 'org_a', toString(number), concat('w', toString(number % 10)) AS text, text AS words, 1, '2026-06-01', number FROM numbers(${LATER})`,
  );
  await mover.insert('span_texts_recent', [{ span_id: 'last', prompt: 'w3', log_seq: LATER }]);
  expect(await move(await mover.lead())).toBe(LATER + 1);
  const [texts, places] = [
    'SELECT count(), uniqExact(doc), uniqExact(bitShiftRight(doc, 16)) FROM span_texts',
    `SELECT sum(length(places)), sum(arraySum(counts)), sumIf(length(places), word = cityHash64('w3')) FROM span_words`,
  ].map((sql) => mover.database.run(sql));
  expect(await texts).toBe(`${LATER + 1}\t${LATER + 1}\t2\n`);
  expect(await places).toBe(`${LATER + 1}\t${LATER + 1}\t${LATER / 10 + 1}\n`);
  expect(await mover.orphans()).toBe(0);
}, 60_000);

test('a move that ended before its texts were copied is repeated, and the sweep removes its places', async () => {
  await mover.insert('span_texts_recent', [{ span_id: 'kept', prompt: 'be kept', log_seq: 1 }]);
  const killed = await mover.lead();
  expect(await move(killed)).toBe(1);
  await mover.insert('span_texts_recent', [
    { span_id: 'one', prompt: 'to be or not to be', log_seq: 2 },
    { span_id: 'two', prompt: 'not to be', drop_on: OTHER_WEEK, log_seq: 3 },
  ]);
  const parts = await killed.numbered();
  for (const { first, rows } of parts)
    for (const segment of segmentsOf(first, rows))
      await writePostings(
        mover.client,
        'span_texts_recent',
        { from: segment << 16n, until: (segment + 1n) << 16n },
        { parts, epoch: killed.epoch, queryId: 'move-killed' },
      );
  const next = await mover.lead();
  expect(await move(killed)).toBeUndefined();
  expect(await move(next)).toBe(2);
  expect(await mover.postings()).toEqual(await mover.expected());
  expect(await mover.orphans()).toBe(7);
  await next.finish();
  expect(await mover.orphans()).toBe(0);
  expect(await mover.postings()).toEqual(await mover.expected());
  expect(
    await mover.database.run('SELECT countIf(empty(places) OR length(places) != length(counts)) FROM span_words'),
  ).toBe('0\n');
}, 60_000);

test('a sweep removes no place where documents are missing that it counted, and a later one removes the places', async () => {
  const killed = await mover.lead();
  for (const [seq, span_id] of ['kept', 'late', 'lost', 'masked'].entries())
    await mover.insert('span_texts_recent', [{ span_id, prompt: `to be ${span_id}`, log_seq: seq + 1 }]);
  expect(await move(killed)).toBe(4);
  await mover.database.run("ALTER TABLE span_texts DELETE WHERE span_id = 'lost' SETTINGS mutations_sync = 1");
  // A projection of span_texts has a masked text until a merge.
  await mover.database.run("DELETE FROM span_texts WHERE span_id = 'masked'");
  const next = await mover.lead();
  // A replica that has not fetched a part of span_texts yet sees the same.
  const hide = () => mover.database.run("ALTER TABLE span_texts DETACH PARTITION '2026-06-01'");
  const show = () => mover.database.run("ALTER TABLE span_texts ATTACH PARTITION '2026-06-01'");
  const before = await mover.postings();
  expect(before).toHaveLength(6);
  const removals: string[][] = [];
  const store: PlaceStore = {
    sweptEpoch: () => next.older.sweptEpoch(),
    unsweptSegments: (from, until) => next.older.unsweptSegments(from, until),
    orphaned: (segments) => next.older.orphaned(segments),
    documents: (segments) => next.older.documents(segments),
    async removeOrphans(segments, documents) {
      const lags = removals.length === 0;
      if (lags) await hide();
      await next.older.removeOrphans(segments, documents);
      await mover.settled();
      if (lags) await show();
      removals.push([`${await mover.orphans()} orphans`, ...(await mover.postings())]);
    },
    writeSwept: (epoch) => next.older.writeSwept(epoch),
    settled: () => next.older.settled(),
  };
  const sweep = new PlaceSweep(store, createLogger('test', 'silent'));
  sweep.begin(next.epoch);
  await eventually(async () => {
    await sweep.step();
    return (await next.older.sweptEpoch()) === next.epoch;
  });
  expect(removals).toEqual([
    ['6 orphans', ...before],
    ['0 orphans', ...before],
  ]);
}, 60_000);

test('a move that ended before its parts were dropped is repeated, and its texts keep their numbers', async () => {
  await mover.insert('span_texts_recent', [{ span_id: 'one', prompt: 'to be or not', log_seq: 1 }]);
  expect(await move(await mover.lead(), false)).toBe(1);
  const doc = await mover.database.run('SELECT doc FROM span_texts');
  const next = await mover.lead();
  expect(await move(next)).toBe(0);
  expect([await waiting(), await mover.database.run('SELECT doc FROM span_texts')]).toEqual([0, doc]);
  // Its own epoch is not swept yet.
  await next.finish();
  expect(await mover.orphans()).toBe(4);
  await (await mover.lead()).finish();
  expect(await mover.orphans()).toBe(0);
  expect(await mover.postings()).toEqual(await mover.expected());
}, 60_000);

test('parts that a mutation renamed are moved and dropped, those that lost rows are left for the next move', async () => {
  await mover.insert('span_texts_recent', [{ span_id: 'renamed', prompt: 'to be', log_seq: 1 }]);
  await mover.insert('span_texts_recent', [
    { span_id: 'erased', prompt: 'to erase', log_seq: 2 },
    { span_id: 'left', prompt: 'to leave', log_seq: 3 },
  ]);
  const leader = await mover.lead();
  const parts = await leader.numbered();
  await mover.database.run("ALTER TABLE span_texts_recent DELETE WHERE span_id = 'erased' SETTINGS mutations_sync = 1");
  const moved = await leader.texts.move(parts, leader.epoch, 'move-renamed');
  expect([moved?.copied, moved?.parts.map(({ rows }) => rows)]).toEqual([1, [1]]);
  await mover.database.run('ALTER TABLE span_texts_recent UPDATE cost_usd = 1 WHERE 1 SETTINGS mutations_sync = 1');
  await leader.texts.dropParts(parts);
  expect(await mover.database.run('SELECT span_id FROM span_texts_recent')).toBe('left\n');
  expect(await move(leader)).toBe(1);
  expect(await mover.postings()).toEqual(await mover.expected());
}, 60_000);

test('all parts of a move are dropped, however many there are and also when one of them is gone', async () => {
  await mover.database.run(
    `INSERT INTO span_texts_recent (org_id, span_id, prompt, words, dl, drop_on, log_seq)
     SELECT 'org_a', toString(number), 'to be' AS text, text AS words, 2, '2026-06-01', number FROM numbers(130)
     SETTINGS max_block_size = 1, min_insert_block_size_rows = 1, min_insert_block_size_bytes = 1, max_threads = 1`,
  );
  const leader = await mover.lead();
  const moved = await leader.texts.move(await leader.numbered(), leader.epoch, 'move-many');
  expect([moved?.copied, moved?.parts.length]).toEqual([130, 130]);
  await mover.insert('span_texts_recent', [{ span_id: 'later', prompt: 'to stay', log_seq: 200 }]);
  await mover.database.run(`ALTER TABLE span_texts_recent DROP PART '${moved?.parts[40]?.name}'`);
  await leader.texts.dropParts(moved?.parts ?? []);
  expect(await mover.database.run('SELECT span_id FROM span_texts_recent')).toBe('later\n');
}, 60_000);

test('texts that are mutated while they move are moved once each, with all of their postings', async () => {
  let leader = await mover.lead();
  for (let turn = 0; turn < 8; turn += 1) {
    for (const n of [1, 2])
      await mover.insert('span_texts_recent', [{ span_id: `s${turn}_${n}`, prompt: 'to be', log_seq: 2 * turn + n }]);
    const mutated = mover.database.run(
      'ALTER TABLE span_texts_recent UPDATE cost_usd = cost_usd + 1 WHERE 1 SETTINGS mutations_sync = 1',
    );
    try {
      await move(leader);
    } catch {
      // As the mover does when a move failed.
      leader = await mover.lead();
    }
    // A dropped part ends the mutation.
    await mutated.catch(() => undefined);
  }
  while ((await waiting()) > 0) await move(leader);
  expect(await mover.database.run('SELECT count(), uniqExact(doc), uniqExact(span_id) FROM span_texts')).toBe(
    '16\t16\t16\n',
  );
  expect(await mover.postings()).toEqual(await mover.expected());
}, 60_000);

test('a part whose texts have not all of their postings is known', async () => {
  await mover.database.run(
    `INSERT INTO span_texts_recent (org_id, span_id, prompt, words, dl, drop_on, log_seq)
     SELECT 'org_a', toString(number), 'to be' AS text, text AS words, 2, '2026-06-01', number FROM numbers(${LATER})`,
  );
  const leader = await mover.lead();
  const parts = await leader.numbered();
  const [segment] = segmentsOf(parts[0]?.first ?? 0n, LATER);
  if (segment === undefined) throw new Error('there is a part');
  const [from, middle, until] = [segment << 16n, (segment << 16n) + 9n, (segment + 1n) << 16n];
  const post = (range: { from: bigint; until: bigint }) =>
    writePostings(mover.client, 'span_texts_recent', range, { parts, epoch: leader.epoch, queryId: 'move-posted' });
  await post({ from: middle, until });
  expect(await arePosted(mover.client, parts, { from, until })).toBe(false);
  await post({ from, until: middle });
  expect(await arePosted(mover.client, parts, { from, until })).toBe(true);
}, 60_000);

test('a repeated move copies what is missing, in memory that depends on the moved parts alone', async () => {
  await mover.database.run(
    `INSERT INTO span_texts (org_id, log_seq, log_index) SELECT 'org_a', 10 + intDiv(number, 100), number % 100 FROM numbers(${LATER})`,
  );
  for (const [seq, prompt] of [
    [7, 'seven'],
    [8, 'eight'],
    [9, 'nine'],
  ] as const)
    await mover.insert('span_texts_recent', [{ span_id: prompt, prompt, log_seq: seq }]);
  await mover.insert('span_texts', [{ span_id: 'eight', prompt: 'eight', log_seq: 8 }]);
  const leader = await mover.lead();
  expect((await leader.numbered()).map(({ rows }) => rows)).toEqual([1, 1, 1]);
  expect(await move(leader, false)).toBe(2);
  expect(await move(leader)).toBe(0);
  expect(
    await mover.database.run(
      "SELECT prompt, count() FROM span_texts WHERE prompt != '' GROUP BY prompt ORDER BY prompt",
    ),
  ).toBe('eight\t1\nnine\t1\nseven\t1\n');
}, 60_000);

test('moved and merged parts are left out of a read of another time by their smallest and largest time', async () => {
  await mover.database.run(
    "INSERT INTO span_texts_recent (org_id, started_at, log_seq) VALUES ('org_b', '2026-01-05 10:00:00', 80000)",
  );
  expect(await move(await mover.lead())).toBe(1);
  const read = (hour: number): string =>
    `SELECT count() FROM span_texts WHERE org_id = 'org_b' AND started_at >= '2026-01-05 ${hour}:00:00'`;
  const leftOut = async (hour: number): Promise<boolean> =>
    /Statistics[^]*?Parts: 0\/1/.test(await mover.database.run(`EXPLAIN indexes = 1 ${read(hour)}`));
  const looks = async () => [await mover.database.run(read(10)), await leftOut(10), await leftOut(11)];
  expect(await looks()).toEqual(['1\n', false, true]);
  await mover.database.run('OPTIMIZE TABLE span_texts FINAL');
  expect(await looks()).toEqual(['1\n', false, true]);
}, 60_000);
