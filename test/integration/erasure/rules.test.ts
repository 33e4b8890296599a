// Which traces an erasure matches, and that it leaves no row of them, on the real engine.
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { Span } from '../../../pipeline/domain/traces/span.ts';
import { TEXT_PLACES } from '../../../pipeline/domain/text/text_refs.ts';
import { ErasureStore } from '../../../sql/stores/erasure.ts';
import { aText, DAY, openCold, type TestCold } from '../retention/a_cold.ts';

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
    expect(await store.remaining(scope, Number.MAX_SAFE_INTEGER)).toEqual(new Map());
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
