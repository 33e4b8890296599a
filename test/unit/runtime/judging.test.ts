// Judging beside a batch: the buffer of open traces, what is read back, the former owner's
// verdicts, and organizations whose judges have used up their time.
import { afterAll, describe, expect, it } from 'vitest';
import { PatternRunner } from '../../../ops/platform/pattern_runner.ts';
import { LiveTaskThrottle } from '../../../pipeline/judging/live_task_throttle.ts';
import { JudgedInputs } from '../../../pipeline/judging/rule_inputs.ts';
import { type JudgedStore, placeKeyOf, type StoredRef } from '../../../pipeline/judging/rule_inputs_store.ts';
import { followJudges } from '../../../pipeline/judging/enabled_judges.ts';
import { OrgTime } from '../../../ops/platform/org_time.ts';
import { scoreTraces, type ScoringDeps } from '../../../pipeline/judging/rule_scores.ts';
import { OpenTraces } from '../../../pipeline/traces/open_traces.ts';
import { compileJudge, type Judgement } from '../../../pipeline/judging/rule_judges.ts';
import { judgeKey, type JudgeRecord } from '../../../schemas/records/judge.ts';
import { noiseOfTwo } from '../../support/noise.ts';
import { anEvent, aSpan } from '../../support/spans.ts';

const record = (over: Partial<JudgeRecord> = {}): JudgeRecord => ({
  org_id: 'org_a',
  judge_id: 'judge_0000000000000001',
  version: 1,
  name: 'polite',
  kind: 'deterministic',
  rule: { type: 'contains', fields: ['response'], value: 'please' },
  prompt_template: null,
  model: null,
  rubric: null,
  threshold: { pass: 1 },
  scope: {},
  cooldown_seconds: 0,
  enabled: true,
  created_at: '2026-01-01T00:00:00.000Z',
  updated_at: '2026-01-01T00:00:00.000Z',
  ...over,
});

/** A store that has the given rows, and records what it was asked. */
class GivenStore implements JudgedStore {
  readonly asked: StoredRef[] = [];
  judged: Judgement[] = [];
  response = '';

  spans(refs: readonly StoredRef[]) {
    this.asked.push(...refs);
    const span = {
      place: [1, 0, 0] as const,
      started_at: 0,
      ended_at: 1,
      is_root: true,
      kind: 'llm' as const,
      model: 'm',
      source_format: 'custom',
    };
    const stored = { ...span, prompt: '', response: null, attributes: null, attribute_bytes: 0 };
    return Promise.resolve(new Map(refs.map(({ org_id, trace_id }) => [`${org_id} ${trace_id}`, [stored]])));
  }

  texts(refs: readonly StoredRef[]) {
    return Promise.resolve(
      new Map(refs.map((ref) => [placeKeyOf(ref, [1, 0, 0]), { prompt: '', response: this.response, attributes: {} }])),
    );
  }

  judgements(refs: readonly StoredRef[]) {
    return Promise.resolve(new Map(refs.map(({ org_id, trace_id }) => [`${org_id} ${trace_id}`, this.judged])));
  }
}

const runner = new PatternRunner();
afterAll(() => runner.close());

const deps = (
  store: JudgedStore,
  records: readonly JudgeRecord[] = [record()],
  over: Partial<ScoringDeps> = {},
): ScoringDeps => ({
  judgesOf: () => ({
    rules: records.filter(({ kind }) => kind === 'deterministic').map(compileJudge),
    llm: records.filter(({ kind }) => kind === 'llm'),
  }),
  store,
  time: new OrgTime(),
  runner,
  throttle: new LiveTaskThrottle(),
  now: () => 0,
  yield: () => Promise.resolve(),
  ...over,
});

const limits = { graceMs: 0, idleMs: 0, openMax: 100, doneMax: 100, judgedFromStoreMax: 100 };
const bookWith = (inputs: JudgedInputs): OpenTraces => new OpenTraces(0, limits, undefined, inputs);
const completeOf = (book: OpenTraces) => {
  book.tick(Infinity);
  return book.takeEvents().flatMap(({ complete }) => complete ?? []);
};
const said = (response: string) => aSpan({ response });

describe('what is held of open traces', () => {
  it('the buffer of open traces has the whole trace when judges existed from its first event on', async () => {
    const book = bookWith(new JudgedInputs(() => true, 1_000_000));
    book.apply(anEvent(5, said('please')));
    const [complete] = completeOf(book);
    expect(complete).toMatchObject({ stored_through: 0, version: 5, restored: false });
    const store = new GivenStore();
    const [scored] = await scoreTraces(deps(store), complete === undefined ? [] : [complete]);
    expect(scored?.scores).toEqual({ polite: 1 });
    expect(store.asked).toEqual([]);
  });

  it('the buffer of open traces is empty for an organization without judges', () => {
    const inputs = new JudgedInputs(() => false, 1_000_000);
    const book = bookWith(inputs);
    book.apply(anEvent(5));
    expect(inputs.bytes).toBe(0);
    expect(completeOf(book)).toEqual([]);
  });

  it('the buffer of open traces begins where judges are added in the middle, and after a gap; earlier spans are in the store', () => {
    let wants = false;
    const book = bookWith(new JudgedInputs(() => wants, 1_000_000));
    book.apply(anEvent(1));
    wants = true;
    book.apply(anEvent(2, said('second')));
    wants = false;
    book.apply(anEvent(3));
    wants = true;
    book.apply(anEvent(4, said('fourth')));
    const [complete] = completeOf(book);
    expect(complete).toMatchObject({ stored_through: 3, version: 4 });
    expect(complete?.draft?.any_response?.text).toBe('fourth');
  });

  it('the buffer of open traces drops what has landed beyond its bound, and counts its memory', () => {
    const inputs = new JudgedInputs(() => true, 10_000);
    const book = bookWith(inputs);
    const trace = (name: string, seq: number) => {
      book.apply(anEvent(seq, aSpan({ trace_id: name, response: 'x'.repeat(4000) })));
    };
    trace('a', 1);
    trace('b', 2);
    trace('c', 3);
    const full = inputs.bytes;
    expect(full).toBeGreaterThan(3 * 8000);
    expect(full).toBeLessThan(3 * 10_000);
    book.trimInputs(0);
    expect(inputs.bytes).toBe(full);
    book.trimInputs(1);
    expect(inputs.bytes).toBeLessThan(full);
    book.trimInputs(3);
    expect(inputs.bytes).toBeLessThanOrEqual(10_000);
    trace('a', 4);
    const byTrace = new Map(completeOf(book).map((complete) => [complete.state.trace_id, complete]));
    expect(byTrace.get('a')).toMatchObject({ stored_through: 1, version: 4 });
    expect(byTrace.get('a')?.draft).not.toBeNull();
    expect(byTrace.get('b')).toMatchObject({ stored_through: 2, draft: null });
    expect(byTrace.get('c')).toMatchObject({ stored_through: 0 });
    expect(inputs.bytes).toBe(0);
  });
});

describe('a trace that was taken over', () => {
  const restored = async (store: GivenStore, sampled = true, over: Partial<ScoringDeps> = {}) => {
    const before = new OpenTraces(0, limits);
    before.apply(anEvent(5, said('before'), { retain: sampled ? 'full' : 'summary' }));
    const row = before.takeRows();
    expect(row).toHaveLength(1);
    const book = bookWith(new JudgedInputs(() => true, 1_000_000));
    const fresh = new OpenTraces(0, limits, undefined, new JudgedInputs(() => true, 1_000_000));
    fresh.apply(anEvent(5, said('before'), { retain: sampled ? 'full' : 'summary' }));
    const [complete] = completeOf(fresh);
    if (complete === undefined) throw new Error('no complete trace');
    book.restore({ state: complete.state, version: 5 }, { open: true, announce: false, now: 0 });
    const records = [
      record(),
      record({
        judge_id: 'judge_0000000000000002',
        name: 'quick',
        rule: { type: 'max_duration_ms', fields: [], max: 1e9 },
      }),
    ];
    return scoreTraces(deps(store, records, over), completeOf(book));
  };

  it('a trace that was taken over is judged by its spans in the store', async () => {
    const store = new GivenStore();
    store.response = 'yes, please';
    const [scored] = await restored(store);
    expect(store.asked).toMatchObject([{ trace_id: 'trc_1', through: 5 }]);
    expect(scored?.scores).toEqual({ polite: 1, quick: 1 });
    expect(scored?.fresh).toHaveLength(2);
  });

  it("a trace that was taken over keeps its former owner's verdicts, which are reported and not written again", async () => {
    const store = new GivenStore();
    store.judged = [
      {
        judge_id: 'judge_0000000000000001',
        judge_version: 7,
        judge_name: 'polite',
        score: 0,
        verdict: 'fail',
        reason: 'r',
      },
    ];
    store.response = 'yes, please';
    const [scored] = await restored(store);
    expect(scored?.scores).toEqual({ polite: 0, quick: 1 });
    expect(scored?.fresh.map(({ judge_name }) => judge_name)).toEqual(['quick']);
    expect(scored?.breaches.map(({ judge_id, score }) => [judge_id, score])).toEqual([['judge_0000000000000001', 0]]);
  });

  it('a trace that was taken over is not judged by texts that sampling dropped', async () => {
    const [scored] = await restored(new GivenStore(), false);
    expect(scored?.scores).toEqual({ quick: 1 });
  });
});

describe('judges', () => {
  const bucketOf = (records: readonly JudgeRecord[]) => {
    const listeners: ((
      key: string,
      held: { value: JudgeRecord; revision: number; moved_at: number } | null,
    ) => void)[] = [];
    const held = (value: JudgeRecord) => ({ value, revision: 1, moved_at: 0 });
    return {
      entries: () => new Map(records.map((one) => [judgeKey(one.org_id, one.judge_id), held(one)])).entries(),
      onChange: (listener: (typeof listeners)[number]) => {
        listeners.push(listener);
        return () => true;
      },
      close: () => undefined,
      put: (one: JudgeRecord) => {
        for (const listener of listeners) listener(judgeKey(one.org_id, one.judge_id), held(one));
      },
    };
  };

  it('only enabled, valid judges judge; one without a rule is reported once and left out', () => {
    const problems: string[] = [];
    const broken = record({ judge_id: 'judge_0000000000000002', rule: null });
    const bucket = bucketOf([
      record(),
      broken,
      record({ judge_id: 'judge_0000000000000003', kind: 'llm', rule: null }),
    ]);
    const judges = followJudges(bucket, (problem) => problems.push(problem));
    const first = judges.of('org_a');
    expect(first?.rules.map(({ record: { judge_id } }) => judge_id)).toEqual(['judge_0000000000000001']);
    expect(first?.llm).toHaveLength(1);
    expect(judges.of('org_a')).toBe(first);
    expect(problems).toHaveLength(1);
    expect(judges.of('org_b')).toBeNull();
    bucket.put(record({ version: 2, enabled: false }));
    expect(judges.of('org_a')?.rules).toEqual([]);
    expect(problems).toHaveLength(1);
  });

  it('judges of an organization that took too much time pause for a while; others do not', async () => {
    const time = new OrgTime();
    time.spend('org_a', 60_000, performance.now());
    const book = bookWith(new JudgedInputs(() => true, 1_000_000));
    book.apply(anEvent(1, aSpan({ trace_id: 'a' })));
    book.apply(anEvent(2, aSpan({ trace_id: 'b', org_id: 'org_b' }), { org_id: 'org_b' }));
    const scored = await scoreTraces(deps(new GivenStore(), [record()], { time }), completeOf(book));
    expect(scored.map(({ trace, scores }) => [trace.state.trace_id, scores])).toEqual([
      ['a', {}],
      ['b', { polite: 0 }],
    ]);
    expect(scored[0]?.fresh).toMatchObject([{ score: null, verdict: 'error' }]);
    expect(time.isSpent('org_a', performance.now() + 200_000)).toBe(false);
  });

  const scoreOf = async (records: readonly JudgeRecord[], response: string) => {
    const book = bookWith(new JudgedInputs(() => true, 10_000_000));
    book.apply(anEvent(1, aSpan({ trace_id: 'a', response })));
    const [scored] = await scoreTraces(deps(new GivenStore(), records), completeOf(book));
    return new Map(scored?.fresh.map((judgement) => [judgement.judge_id, judgement]));
  };

  it('judges with an invalid stored rule give the verdict error with the reason; the others judge', async () => {
    const broken = record({
      judge_id: 'judge_0000000000000002',
      rule: { type: 'regex_absent', fields: ['response'], pattern: '(?:ab){600}' },
    });
    const said = await scoreOf([record(), broken], 'please');
    expect(said.get('judge_0000000000000001')).toMatchObject({ score: 1, verdict: 'pass' });
    expect(said.get(broken.judge_id)).toMatchObject({
      score: null,
      verdict: 'error',
      reason: expect.stringContaining('must have at most 1000') as string,
    });
  });

  it('judges whose patterns are slow on a trace get the verdict error together after half a second; quick ones judge', async () => {
    // Each of these patterns takes the automaton about a second on this text; forty of them blocked
    // every organization.
    const slow = Array.from({ length: 40 }, (_, index) =>
      record({
        judge_id: `judge_${String(index).padStart(16, 'f')}`,
        rule: { type: 'regex_absent', fields: ['response'], pattern: `a[ab]{${900 + index}}[cd]` },
      }),
    );
    const noise = noiseOfTwo(200_000);
    const before = performance.now();
    const said = await scoreOf([...slow, record()], `${noise} please`);
    expect(performance.now() - before).toBeLessThan(10_000);
    expect(said.get('judge_0000000000000001')).toMatchObject({ score: 1 });
    expect(said.size).toBe(41);
    expect(said.get(slow.at(-1)?.judge_id ?? '')).toMatchObject({
      score: null,
      verdict: 'error',
      reason: expect.stringContaining('more than the 500 ms') as string,
    });
  }, 60_000);

  it('judges with a large schema or text run in a thread, with the same verdict as in place', async () => {
    const schema = {
      properties: Object.fromEntries(Array.from({ length: 400 }, (_, n) => [`field${n}`, { maxLength: 5 }])),
    };
    const large = record({
      judge_id: 'judge_0000000000000002',
      rule: { type: 'json_schema', fields: ['response'], schema },
    });
    const regex = record({
      judge_id: 'judge_0000000000000003',
      rule: { type: 'regex_present', fields: ['response'], pattern: 'q[xyz]' },
    });
    const contains = record({
      judge_id: 'judge_0000000000000004',
      rule: { type: 'contains', fields: ['response'], value: 'x'.repeat(10_000) },
    });
    const said = await scoreOf(
      [large, regex, contains],
      JSON.stringify({ field7: 'longer than five', text: 'x'.repeat(100_000) }),
    );
    expect(said.get(large.judge_id)).toMatchObject({
      score: 0,
      reason: 'response /field7 must NOT have more than 5 characters',
    });
    expect(said.get(regex.judge_id)).toMatchObject({ score: 0 });
    expect(said.get(contains.judge_id)).toMatchObject({ score: 1 });
  }, 60_000);

  it('judges of the kind llm get a task with a stable id, and no more tasks than their cooldown permits', async () => {
    const llm = record({ kind: 'llm', rule: null, cooldown_seconds: 60, version: 3 });
    let now = 0;
    const given = deps(new GivenStore(), [llm], { now: () => now });
    const tasksOf = async (trace_id: string, agent_id: string) => {
      const book = bookWith(new JudgedInputs(() => true, 1_000_000));
      book.apply(anEvent(1, aSpan({ trace_id, agent_id })));
      return (await scoreTraces(given, completeOf(book))).flatMap(({ tasks }) => tasks);
    };
    const [task] = await tasksOf('t1', 'bot');
    expect(task).toMatchObject({ kind: 'live', judge_version: 3, trace_ids: ['t1'], agent_id: 'bot', eval_id: '' });
    expect(await tasksOf('t2', 'bot')).toEqual([]);
    expect(await tasksOf('t2', 'other')).toHaveLength(1);
    now = 61_000;
    expect((await tasksOf('t1', 'bot'))[0]?.task_id).toBe(task?.task_id);
  });

  it('judges of the kind llm get the first trace after a cooldown, whatever was offered within it', async () => {
    const llm = record({ kind: 'llm', rule: null, cooldown_seconds: 60 });
    let now = 0;
    const given = deps(new GivenStore(), [llm], { now: () => now });
    const offeredAt = async (seconds: number): Promise<boolean> => {
      now = seconds * 1000;
      const book = bookWith(new JudgedInputs(() => true, 1_000_000));
      book.apply(anEvent(1, aSpan({ trace_id: `at_${seconds}`, agent_id: 'bot' })));
      return (await scoreTraces(given, completeOf(book))).some(({ tasks }) => tasks.length > 0);
    };
    const offered: number[] = [];
    for (const seconds of [0, 3, 7, 12, 14, 58, 60, 61, 121]) if (await offeredAt(seconds)) offered.push(seconds);
    // Another worker's cooldown may end sooner, so a few are offered within it; they do not delay
    // the one that is due.
    expect(offered).toEqual([0, 7, 14, 58, 60, 121]);
  });
});
