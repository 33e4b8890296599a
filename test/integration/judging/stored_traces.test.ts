// Traces as judges see them, read from the store: the prompt and response of a trace, its sums, and
// its attributes with their texts.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Span } from '../../../pipeline/domain/traces/span.ts';
import { judgedTraceGroups, JUDGED_TRACES_MAX, readJudgedTraces } from '../../../pipeline/judging/stored_traces.ts';
import { aSpan } from '../../support/spans.ts';
import { openTestStore, type TestStore } from '../../support/store.ts';

const T0 = Date.UTC(2026, 4, 1, 12);
const signal = new AbortController().signal;
const long = 'a text that is long enough to be worth a reference of its own';

let store: TestStore;
let traces = 0;

beforeAll(async () => {
  store = await openTestStore();
});
afterAll(() => store.close());

/** Lands the spans of one trace, and returns its id. */
async function land(spans: readonly Partial<Span>[]): Promise<string> {
  traces++;
  const trace_id = `trc_${traces}`;
  await store.landSpans(spans.map((span) => aSpan({ trace_id, started_at: T0, ended_at: T0 + 100, ...span })));
  return trace_id;
}

const read = async (...ids: string[]) => readJudgedTraces(store.client, 'org_a', ids, signal);
const one = async (spans: readonly Partial<Span>[]) => (await read(await land(spans)))[0];

describe('a trace as judges see it', () => {
  it('a trace has the texts of its root as judges see it', async () => {
    const trace = await one([
      {
        span_id: 's2',
        parent_span_id: 's1',
        prompt: 'inner',
        response: 'inner answer',
        started_at: T0 - 50,
        ended_at: T0 + 900,
      },
      {
        span_id: 's1',
        kind: 'event',
        name: 'book',
        model: '',
        prompt: 'outer',
        response: 'outer answer',
        agent_id: 'booker',
      },
    ]);
    expect(trace).toMatchObject({
      name: 'book',
      prompt: 'outer',
      response: 'outer answer',
      agent_id: 'booker',
      model: '',
      outcome: 'success',
    });
    expect(trace).toMatchObject({
      started_at: T0 - 50,
      duration_ms: 950,
      input_tokens: 20,
      output_tokens: 10,
      cost_usd: 0.00015,
    });
  });
  it('a trace has the texts of its first and last model call when the root has none', async () => {
    const trace = await one([
      { span_id: 's1', kind: 'event', prompt: '', response: '' },
      {
        parent_span_id: 's1',
        kind: 'tool',
        prompt: 'tool in',
        response: 'tool out',
        started_at: T0 + 1,
        ended_at: T0 + 999,
      },
      {
        parent_span_id: 's1',
        prompt: 'second',
        response: 'last answer',
        model: 'm2',
        started_at: T0 + 30,
        ended_at: T0 + 80,
      },
      {
        parent_span_id: 's1',
        prompt: 'first',
        response: 'early answer',
        model: 'm1',
        started_at: T0 + 10,
        ended_at: T0 + 20,
      },
    ]);
    expect(trace).toMatchObject({ prompt: 'first', response: 'last answer', model: 'm2' });
  });
  it('a trace has the texts of any span when it has no model call', async () => {
    const trace = await one([
      { span_id: 's1', kind: 'event', prompt: '', response: '' },
      {
        parent_span_id: 's1',
        kind: 'tool',
        prompt: 'later',
        response: 'early end',
        started_at: T0 + 9,
        ended_at: T0 + 10,
        model: '',
      },
      {
        parent_span_id: 's1',
        kind: 'tool',
        prompt: 'earlier',
        response: 'late end',
        started_at: T0 + 5,
        ended_at: T0 + 50,
        model: '',
      },
    ]);
    expect(trace).toMatchObject({ prompt: 'earlier', response: 'late end', model: '' });
  });
  it('a trace needs no root', async () => {
    const trace = await one([
      {
        parent_span_id: 'gone',
        kind: 'tool',
        name: 'search',
        prompt: 'q',
        response: 'r',
        agent_id: 'helper',
        attributes: { first: true },
      },
      { parent_span_id: 'gone', started_at: T0 + 5, prompt: 'asked', response: 'told', attributes: { first: false } },
    ]);
    expect(trace).toMatchObject({
      name: '',
      prompt: 'asked',
      response: 'told',
      agent_id: 'helper',
      attributes: { first: true },
    });
  });
  it('a trace with several roots uses the earliest', async () => {
    const trace = await one([
      { prompt: 'late root', response: 'late', started_at: T0 + 5, name: 'late' },
      { prompt: 'early root', response: 'early', started_at: T0, name: 'early' },
    ]);
    expect(trace).toMatchObject({ name: 'early', prompt: 'early root', response: 'early' });
  });
  it('a trace fails by its worst span, and has the tags of all', async () => {
    const trace = await one([{ tags: ['a'] }, { parent_span_id: 'x', outcome: 'timeout', tags: ['b', 'a'] }]);
    expect(trace?.outcome).toBe('timeout');
    expect(trace?.tags.toSorted()).toEqual(['a', 'b']);
    expect(
      (await one([{}, { parent_span_id: 'x', outcome: 'error' }, { parent_span_id: 'x', outcome: 'timeout' }]))
        ?.outcome,
    ).toBe('error');
  });
  it('a trace has attributes with their folded texts restored', async () => {
    const attributes = { input: long, n: 1 };
    expect((await one([{ prompt: long, attributes }]))?.attributes).toEqual({ input: long, n: 1 });
  });
  it('a trace is the same while its texts are in one table, the other, or both', async () => {
    const id = await land([{ prompt: 'moving', response: 'texts' }]);
    const before = await read(id);
    await store.moveTexts(false);
    expect(await read(id)).toEqual(before);
    await store.database.run('TRUNCATE TABLE span_texts_recent');
    expect(await read(id)).toEqual(before);
    expect(before[0]?.prompt).toBe('moving');
  });
  it('a trace has no texts when none are stored', async () => {
    expect(await one([{ prompt: '', response: '' }])).toMatchObject({ prompt: '', response: '', model: '' });
  });
});

describe('many traces', () => {
  it('many traces are read together, even months apart, and missing ones are absent from the result', async () => {
    const ids = await Promise.all([
      land([{ prompt: 'p1' }]),
      land([{ prompt: 'p2', started_at: T0 - 90 * 86_400_000 }]),
      land([{ prompt: 'p3' }]),
    ]);
    const found = await read(...ids, 'trc_of_nobody');
    expect(new Map(found.map(({ trace_id, prompt }) => [trace_id, prompt]))).toEqual(
      new Map([
        [ids[0], 'p1'],
        [ids[1], 'p2'],
        [ids[2], 'p3'],
      ]),
    );
  });
  it("traces read are the organization's own, also under an id that another organization has", async () => {
    const id = await land([{ prompt: 'ours' }]);
    await store.landSpans([aSpan({ org_id: 'org_b', trace_id: id, started_at: T0, prompt: 'theirs' })]);
    expect(await read(id)).toMatchObject([{ org_id: 'org_a', prompt: 'ours' }]);
  });
  it('many traces are read in groups of a bounded size', async () => {
    const huge = 'x'.repeat(20 * 1024 * 1024);
    const ids = [await land([{ prompt: huge }]), await land([{ prompt: huge }])];
    const groups: number[] = [];
    for await (const group of judgedTraceGroups(store.client, 'org_a', ids, signal)) {
      groups.push(group.length);
      for (const { prompt } of group) expect(prompt.length).toBe(huge.length);
    }
    expect(groups).toEqual([1, 1]);
  });
  it('the number of traces read is bounded', async () => {
    const ids = Array.from({ length: JUDGED_TRACES_MAX + 1 }, (_, index) => `trc_x${index}`);
    await expect(read(...ids)).rejects.toThrow('at most');
    expect(await read(...ids.slice(1))).toEqual([]);
    expect(await read()).toEqual([]);
  });
});
