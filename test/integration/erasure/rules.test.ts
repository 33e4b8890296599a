// Which traces an erasure matches, and that it leaves no row of them, on the real engine.
import { randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { Span } from '../../../pipeline/domain/traces/span.ts';
import { TEXT_PLACES } from '../../../pipeline/domain/text/text_refs.ts';
import { DocumentNumbers } from '../../../pipeline/landing/document_numbers.ts';
import { Fences } from '../../../pipeline/landing/fences.ts';
import { ClickHouseTextStore } from '../../../pipeline/landing/text_store.ts';
import { ErasureStore } from '../../../sql/stores/erasure.ts';
import { OrgErasureStore } from '../../../sql/stores/org_erasure.ts';
import { writePostings } from '../../../sql/stores/postings.ts';
import { eventually } from '../../support/wait.ts';
import { aText, DAY, openCold, policyOf, type TestCold } from '../retention/a_cold.ts';

let cold: TestCold;
let store: ErasureStore;
let jobs = 0;
const { signal } = new AbortController();
beforeAll(async () => {
  cold = await openCold();
  store = new ErasureStore(cold.store.client);
});
afterEach(async () => {
  await cold.clean();
  await cold.store.database.run('TRUNCATE TABLE erasures');
});
afterAll(() => cold.close());

const aScope = () => ({ org_id: 'org_a', job_id: `job_${(++jobs).toString(16).padStart(16, '0')}` });
async function matched(attribute: string, ...values: string[]): Promise<string[]> {
  const scope = aScope();
  await store.collect(scope, { attribute, values, text: TEXT_PLACES.get(attribute) });
  return store.traces(scope, '', 100);
}
const aTrace = (trace_id: string, over: Partial<Span> = {}): Span => aText(DAY, { trace_id, ...over });

describe('which traces are taken', () => {
  it('traces match that have the whole value as text in a column or at the top of attributes', async () => {
    await cold.land([
      aTrace('by_column', { user_id: 'ann', session_id: 's-1', agent_id: 'agent' }),
      aTrace('by_column', { prompt: 'a sibling that names nobody' }),
      aTrace('by_attribute', { attributes: { user_id: 'ann' } }),
      aTrace('by_alias', { attributes: { 'enduser.id': 'ann', plan: 7, 'a.b': 'x', on: true } }),
      aTrace('nested', { attributes: { user: { user_id: 'ann' } } }),
      aTrace('longer', { user_id: 'anna', attributes: { plan: 77 } }),
      aTrace('in_text', { prompt: 'ann' }),
      aTrace('replay', { attributes: { replay_of: 'in_text' } }),
      aTrace('replay_of_replay', { attributes: { replay_of: 'replay' } }),
      aTrace('replay_of_other', { attributes: { replay_of: 'longer_' } }),
      // The span of an LLM judge's call contains the text of the judged trace.
      aTrace('judging', { attributes: { judged_trace_id: 'replay' } }),
      aTrace('judging_other', { attributes: { judged_trace_id: 'longer_' } }),
      { ...aTrace('other_org', { user_id: 'ann' }), org_id: 'org_b' },
    ]);
    expect(await matched('user_id', 'ann')).toEqual(['by_alias', 'by_attribute', 'by_column']);
    expect(await matched('session_id', 's-1')).toEqual(['by_column']);
    expect(await matched('agent_id', 'agent')).toEqual(['by_column']);
    expect(await matched('trace_id', 'in_text')).toEqual(['in_text', 'judging', 'replay', 'replay_of_replay']);
    expect(await matched('plan', '7')).toEqual(['by_alias']);
    expect(await matched('on', 'true')).toEqual(['by_alias']);
    expect(await matched('a.b', 'x')).toEqual(['by_alias']);
    expect(await matched('user_id', 'anna', 'nobody')).toEqual(['longer']);
    expect(await matched("'; DROP TABLE spans; --", 'x')).toEqual([]);
  });
});

describe('an attribute that is stored once, as the text of its span', () => {
  it("an attribute stored as a reference to its span's text is found by its value, wherever the text is, and no other attribute or span with that text", async () => {
    await cold.land([
      aTrace('searched', { prompt: 'ann', attributes: { input: 'ann' } }),
      aTrace('as_json', { response: '{"who":"ann"}', attributes: { output: { who: 'ann' } } }),
      aTrace('named_otherwise', { prompt: 'ann', attributes: { prompt: 'ann' } }),
      aTrace('not_named', { prompt: 'ann' }),
      aTrace('longer', { prompt: 'anna', attributes: { input: 'anna' } }),
    ]);
    await cold.store.landSpans([aTrace('just_landed', { prompt: 'ann', attributes: { input: 'ann' } })]);
    expect(await matched('input', 'ann')).toEqual(['just_landed', 'searched']);
    expect(await matched('output', '{"who":"ann"}')).toEqual(['as_json']);
    expect(await matched('prompt', 'ann')).toEqual(['named_otherwise']);
  });
});

describe('what is taken', () => {
  const count = (table: string, where: string): Promise<string> =>
    cold.value(`SELECT count() FROM ${table} WHERE ${where} SETTINGS apply_deleted_mask = 0`);

  it('every row of the matching traces is deleted, also superseded ones, in every part and table, and no other row', async () => {
    await cold.land([aTrace('t_1', { user_id: 'ann' }), aTrace('t_1'), aTrace('t_2', { user_id: 'bob' })]);
    await cold.land([aTrace('t_3', { user_id: 'ann' }), { ...aTrace('t_1', { user_id: 'ann' }), org_id: 'org_b' }]);
    await cold.store.landSpans([aTrace('t_3', { user_id: 'ann' }), aTrace('t_2', { user_id: 'bob' })]);
    await cold.store.database.run("DELETE FROM span_texts WHERE trace_id = 't_3'");
    const usage = await cold.value('SELECT sum(cost_usd) FROM usage_events');
    for (const [table, columns] of [
      ['judge_scores', "'org_a', trace"],
      ['user_scores', "'org_a', trace"],
      ['incident_traces', "'org_a', trace"],
    ] as const)
      await cold.store.database.run(
        `INSERT INTO ${table} (org_id, trace_id) SELECT ${columns} FROM (SELECT arrayJoin(['t_1', 't_2', 't_3']) AS trace)`,
      );
    await cold.store.database.run(
      `INSERT INTO incident_traces (org_id, cluster_id, trace_id, sample) VALUES ('org_a', 'clu_1', 't_1', 'of ann'), ('org_a', 'clu_2', 't_2', 'of bob')`,
    );
    await cold.store.database.run(
      `INSERT INTO incidents (org_id, incident_id, cluster_id, status, sample) VALUES ('org_a', 'inc_1', 'clu_1', 'open', 'of ann'), ('org_a', 'inc_2', 'clu_2', 'open', 'of bob')`,
    );

    const scope = aScope();
    await store.collect(scope, { attribute: 'user_id', values: ['ann'] });
    expect([await store.traceCount(scope), (await store.found(scope)).get('spans')]).toEqual([2, 4]);
    await store.emptySamples(scope, signal);
    await store.erase(scope, null, signal);
    expect(
      await store.remaining(
        scope,
        [0, 1, 2, 3].map(() => Number.MAX_SAFE_INTEGER),
      ),
    ).toEqual(new Map());
    for (const table of [
      'spans',
      'span_texts',
      'span_texts_recent',
      'traces',
      'judge_scores',
      'user_scores',
      'incident_traces',
    ])
      expect([table, await count(table, "org_id = 'org_a' AND trace_id IN ('t_1', 't_3')")]).toEqual([table, '0']);
    expect(await count('trace_lookup', "trace_key IN (sipHash64('t_1'), sipHash64('t_3'))")).toBe('1');
    expect(await count('spans', "trace_id = 't_2'")).toBe('2');
    expect(await count('span_texts', "trace_id = 't_2' OR org_id = 'org_b'")).toBe('2');
    expect(await count('judge_scores', '1')).toBe('1');
    expect(
      await cold.value('SELECT groupArray(sample) FROM (SELECT sample FROM incidents FINAL ORDER BY incident_id)'),
    ).toBe("['','of bob']");
    expect(await cold.value('SELECT sum(cost_usd) FROM usage_events')).toBe(usage);

    // A second run changes nothing and keeps the counts of the first.
    await store.collect(scope, { attribute: 'user_id', values: ['ann'] });
    await store.erase(scope, null, signal);
    expect([await store.traceCount(scope), (await store.found(scope)).get('spans')]).toEqual([2, 4]);
    await store.forget(scope.job_id);
    expect(await store.jobs()).toEqual([]);
  });
});

describe('postings', () => {
  /** Returns the trace of each document that has a word, with how often it has the word. */
  const postings = async (word: string): Promise<string[]> =>
    JSON.parse(
      await cold.value(
        `SELECT toJSONString(arraySort(groupArray(concat(if(t.trace_id = '', 'none', t.trace_id), ':', toString(w.times))))) FROM (
           SELECT segment * 65536 + place AS doc, times FROM span_words ARRAY JOIN places AS place, counts AS times WHERE word = cityHash64('${word}')
         ) AS w LEFT JOIN (SELECT doc, trace_id FROM span_texts WHERE doc > 0) AS t USING (doc)`,
      ),
    ) as string[];
  /** Returns the numbers of rows, of places, and of rows that are empty or have lists of different lengths. */
  const sizes = (): Promise<string> =>
    cold.value(
      'SELECT count(), sum(length(places)), countIf(empty(places) OR length(places) != length(counts)) FROM span_words FORMAT TSV',
    );
  const aBoth = () => [
    aTrace('a_1', { user_id: 'ann', prompt: 'zebra zebra okapi', response: '' }),
    { ...aTrace('b_1', { prompt: 'zebra kudu kudu kudu', response: '' }), org_id: 'org_b' },
    aTrace('a_2', { user_id: 'ann', prompt: 'zebra', response: '' }),
    aTrace('a_3', { user_id: 'bob', prompt: 'zebra zebra zebra', response: '' }),
  ];
  async function eraseAnn(): Promise<void> {
    const scope = aScope();
    await store.collect(scope, { attribute: 'user_id', values: ['ann'] });
    await store.erase(scope, null, signal);
  }

  it('an erasure leaves no posting of an erased document, and the postings of others in its segment whole', async () => {
    await cold.land(aBoth());
    expect(await cold.value('SELECT uniqExact(segment) FROM span_words')).toBe('1');
    expect([await postings('okapi'), await postings('zebra')]).toEqual([
      ['a_1:1'],
      ['a_1:2', 'a_2:1', 'a_3:3', 'b_1:1'],
    ]);
    await eraseAnn();
    expect([await postings('okapi'), await postings('zebra'), await postings('kudu')]).toEqual([
      [],
      ['a_3:3', 'b_1:1'],
      ['b_1:3'],
    ]);
    expect(await sizes()).toBe('2\t3\t0');
  });

  it('the deletion of an organization leaves no posting of its documents, in any week', async () => {
    await cold.land(aBoth());
    await cold.land([aText(DAY + 20, { prompt: 'okapi', response: '' })]);
    const erasures = new OrgErasureStore(cold.store.client);
    await cold.store.database.run("DELETE FROM spans WHERE trace_id = 'a_1'");
    const remaining = await erasures.remaining('org_a');
    // Masked rows count too, although projections of the table lack them.
    expect([remaining.get('spans'), remaining.get('span_texts')]).toEqual([4, 4]);
    await erasures.erase('org_a', remaining.keys(), signal);
    expect(await erasures.remaining('org_a')).toEqual(new Map());
    expect([await postings('okapi'), await postings('zebra'), await sizes()]).toEqual([[], ['b_1:1'], '2\t2\t0']);
  });

  it('an erasure repeated after it ended at any point also erases the postings', async () => {
    await cold.land(aBoth());
    const scope = aScope();
    await store.collect(scope, { attribute: 'user_id', values: ['ann'] });
    await cold.store.database.run('SYSTEM STOP MERGES span_words');
    const cut = new AbortController();
    const erasing = store.erase(scope, null, cut.signal);
    const mutations = (): Promise<string> =>
      cold.value(
        "SELECT count() FROM system.mutations WHERE database = currentDatabase() AND table = 'span_words' AND NOT is_done",
      );
    await eventually(async () => (await mutations()) !== '0', { what: 'the rewrite of the postings to begin' });
    cut.abort(new Error('the worker is gone'));
    await expect(erasing).rejects.toThrow();
    expect(await postings('okapi')).toHaveLength(1);
    await cold.store.database.run('SYSTEM START MERGES span_words');
    await store.erase(scope, null, signal);
    expect([await postings('okapi'), await sizes()]).toEqual([[], '2\t3\t0']);
    // The texts are gone, and no rewrite has begun.
    await cold.land([aTrace('a_1', { user_id: 'ann', prompt: 'okapi', response: '' })]);
    await cold.store.database.run("ALTER TABLE span_texts DELETE WHERE trace_id = 'a_1' SETTINGS mutations_sync = 1");
    await store.erase(scope, null, signal);
    expect([await postings('okapi'), await sizes()]).toEqual([[], '2\t3\t0']);
  });

  it('an erasure also erases what a move leaves that it overtakes, and the move is repeated later', async () => {
    const texts = new ClickHouseTextStore(cold.store.client, new Fences(cold.store.client, 'w1'));
    await cold.store.landSpans(aBoth());
    const epoch = await texts.takeMoverFence('w1');
    const numbers = new DocumentNumbers(epoch);
    const parts = (await texts.recentParts()).map((part) => ({ ...part, first: numbers.take(part.rows) }));
    const statement = { parts, epoch, queryId: `move-${randomUUID()}` };
    const from = parts[0]?.first ?? 0n;
    await writePostings(cold.store.client, 'span_texts_recent', { from, until: from + 65_536n }, statement);
    expect(await postings('zebra')).toHaveLength(4);
    await eraseAnn();
    expect(await sizes()).toBe('0\t0\t0');
    expect(await texts.move(parts, epoch, `move-${randomUUID()}`)).toBeNull();
    expect([await cold.value('SELECT count() FROM span_texts'), await sizes()]).toEqual(['0', '0\t0\t0']);
    await cold.moveTexts();
    expect([await cold.value('SELECT count() FROM span_texts'), await sizes()]).toEqual(['2', '2\t3\t0']);
  });

  it('an erasure also erases the postings of texts that retention took out before', async () => {
    await cold.land(aBoth());
    cold.policies.push(policyOf('org_b', { telemetry_events: { full_prompt_response_days: 60 } }));
    await cold.retire(DAY + 31);
    expect([await cold.value('SELECT count() FROM span_texts'), await postings('okapi')]).toEqual(['1', ['none:1']]);
    await eraseAnn();
    expect([await postings('okapi'), await postings('zebra'), await sizes()]).toEqual([[], ['b_1:1'], '2\t2\t0']);
  });
});

it('numbers of an epoch of the text mover begin with the segment at which rewrites of postings divide epochs', () => {
  for (const epoch of [1, 7, 2 ** 27]) expect(new DocumentNumbers(epoch).take(1) >> 36n).toBe(BigInt(epoch));
});
