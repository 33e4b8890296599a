// The input of judges, read back from the real engine: it equals the input gathered in memory,
// whichever table holds the texts.
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { addToDraft, emptyDraft, findingOf } from '../../../pipeline/domain/judging/judged_draft.ts';
import { ClickHouseJudgedStore, placeKeyOf } from '../../../pipeline/judging/rule_inputs_store.ts';
import { scoresLine } from '../../../pipeline/landing/row_encoders.ts';
import { JUDGE_SCORES, landingStatement } from '../../../sql/stores/landing_tables.ts';
import { aSpan } from '../../support/spans.ts';
import { openTestStore, type TestStore, tracesOf } from '../../support/store.ts';

vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 });

let store: TestStore;
let judged: ClickHouseJudgedStore;
beforeAll(async () => {
  store = await openTestStore();
  judged = new ClickHouseJudgedStore(store.client);
});
afterAll(() => store.close());

const question = 'a question that is long enough to be folded into a reference to it';
const spansOf = (trace_id: string) => [
  aSpan({
    trace_id,
    kind: 'event',
    model: '',
    prompt: '',
    response: '',
    started_at: 1000,
    ended_at: 9000,
    attributes: { team: 'a' },
  }),
  aSpan({
    trace_id,
    parent_span_id: 'p',
    kind: 'llm',
    model: 'm1',
    prompt: question,
    response: 'one',
    started_at: 2000,
    ended_at: 3000,
    attributes: { prompt: question },
  }),
  aSpan({
    trace_id,
    parent_span_id: 'p',
    kind: 'llm',
    model: 'm2',
    prompt: 'two?',
    response: 'two',
    started_at: 4000,
    ended_at: 5000,
  }),
];

it('reads the leading spans up to a message, and their texts on request', async () => {
  const spans = ['t1', 't2'].flatMap(spansOf);
  const first = await store.landSpans(spans);
  await store.moveTexts();
  const more = aSpan({
    trace_id: 't2',
    parent_span_id: 'p',
    kind: 'llm',
    model: 'm3',
    prompt: 'three?',
    response: 'three',
    started_at: 6000,
    ended_at: 7000,
  });
  await store.landSpans([more, aSpan({ trace_id: 't3' }), aSpan({ trace_id: 't2', org_id: 'org_b' })]);
  const ref = (trace_id: string, through: number) => ({
    partition: 0,
    org_id: 'org_a',
    trace_id,
    through,
    started_at: 1000,
    ended_at: 9000,
  });
  const [one, two] = [ref('t1', first + 1), ref('t2', first + 6)];
  const refs = [one, two];
  const found = await judged.spans(refs);
  expect([...found.keys()]).toEqual(['org_a t1', 'org_a t2']);
  const findings = [...found.values()].map((own) => {
    const draft = emptyDraft();
    for (const span of own) addToDraft(draft, span);
    return findingOf(draft);
  });
  expect(findings).toEqual([
    {
      prompt: { stored: [first + 1, 0, 0] },
      response: { stored: [first + 1, 0, 0] },
      model: 'm1',
      source_format: 'chatcompletion',
      attributes: { stored: [first, 0, 0] },
      asked: [],
      answered: [],
    },
    {
      prompt: { stored: [first + 4, 0, 0] },
      response: { stored: [first + 6, 0, 0] },
      model: 'm3',
      source_format: 'chatcompletion',
      attributes: { stored: [first + 3, 0, 0] },
      asked: [],
      answered: [],
    },
  ]);
  const texts = await judged.texts(refs, [
    { org_id: 'org_a', trace_id: 't1', place: [first + 1, 0, 0] },
    { org_id: 'org_a', trace_id: 't2', place: [first + 6, 0, 0] },
    { org_id: 'org_a', trace_id: 't1', place: [first, 0, 0] },
  ]);
  expect(texts.get(placeKeyOf(one, [first + 1, 0, 0]))).toEqual({
    prompt: question,
    response: 'one',
    attributes: { prompt: question },
  });
  expect(texts.get(placeKeyOf(two, [first + 6, 0, 0]))).toMatchObject({ prompt: 'three?', response: 'three' });
  expect(texts.get(placeKeyOf(one, [first, 0, 0]))).toEqual({ prompt: '', response: '', attributes: { team: 'a' } });
  expect(texts.size).toBe(3);
});

it('reads the newest verdict of each rule, and none of LLM judges', async () => {
  const [state] = tracesOf(spansOf('t9'));
  if (state === undefined) throw new Error('no trace');
  const judgement = (judge_id: string, score: number | null, judge_version = 1) => ({
    judge_id,
    judge_version,
    judge_name: `name of ${judge_id}`,
    score,
    verdict: score === null ? ('error' as const) : score === 1 ? ('pass' as const) : ('fail' as const),
    reason: 'why',
  });
  const land = (judgements: readonly ReturnType<typeof judgement>[], version: number, scored_at: number) =>
    store.client.execute({
      name: 'land',
      sql: landingStatement(JUDGE_SCORES),
      body: scoresLine(state, judgements, { partition: 0, version, scored_at }),
      timeoutMs: 20_000,
    });
  await land([judgement('judge_a', 0), judgement('judge_b', null)], 5, 1000);
  await land([judgement('judge_a', 1, 2)], 6, 2000);
  await land([judgement('judge_llm', 4)], 0, 3000);
  const refs = ['t9', 'other'].map((trace_id) => ({
    partition: 0,
    org_id: 'org_a',
    trace_id,
    through: 9,
    started_at: 0,
    ended_at: 9000,
  }));
  const known = await judged.judgements(refs);
  expect([...known.keys()]).toEqual(['org_a t9']);
  expect(
    known
      .get('org_a t9')
      ?.map(({ judge_id, judge_version, score, verdict }) => [judge_id, judge_version, score, verdict])
      .toSorted(),
  ).toEqual([
    ['judge_a', 2, 1, 'pass'],
    ['judge_b', 1, null, 'error'],
  ]);
});
