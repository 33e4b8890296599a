// Judges of live traffic: a real API, a real worker, the real engine. A worker judges a trace when
// it is complete; the scores are in trace.completed, in judge_scores, and in
// judge.threshold_breach.
import { afterAll, beforeAll, beforeEach, expect, it, vi } from 'vitest';
import { judgingSubject } from '../../../schemas/streams.ts';
import { FINGERPRINT_HEADER, type JudgingTask, judgingTaskCodec } from '../../../schemas/codec.ts';
import { judgeKey } from '../../../schemas/records/judge.ts';
import { startWorker, type TestWorker } from '../../support/pipeline.ts';
import { eventually } from '../../support/wait.ts';
import { type JudgeBench, openJudgeBench } from './a_judge.ts';

vi.setConfig({ testTimeout: 90_000, hookTimeout: 90_000 });

let bench: JudgeBench;
let worker: TestWorker;

beforeAll(async () => {
  bench = await openJudgeBench();
  worker = startWorker({
    natsUrl: bench.nats.url,
    clickhouseUrl: bench.database.url,
    more: { SERVICE_TRACE_GRACE_MS: '200' },
  });
  await worker.ready;
});
afterAll(async () => {
  worker.kill('SIGKILL');
  await worker.exited;
  await bench.close();
});
beforeEach(() => bench.newOrg());

let sent = 0;
const aCall = (response: string, more: Record<string, unknown> = {}, attributes: Record<string, unknown> = {}) => {
  sent += 1;
  return {
    name: 'call',
    outcome: 'success',
    duration_ms: 40,
    ...more,
    attributes: { serial: sent, prompt: 'a question', response, ...attributes },
  };
};
const completedOf = async (trace_id: string): Promise<Record<string, unknown>> => {
  let found: Record<string, unknown> | undefined;
  await eventually(
    async () => {
      found = (await bench.told('trace.completed')).find((payload) => payload['trace_id'] === trace_id);
      return found !== undefined;
    },
    { what: `trace.completed of ${trace_id}` },
  );
  return found ?? {};
};
const scoresOf = async (trace_id: string) => (await completedOf(trace_id))['judge_scores'];
/**
 * Waits until the worker knows a judge that was created elsewhere, which takes up to a second: the
 * judge then scores a probe trace.
 */
const known = async (name: string): Promise<void> => {
  await eventually(
    async () => {
      const [trace = ''] = await bench.send([aCall('probe')]);
      return Object.hasOwn((await scoresOf(trace)) as object, name);
    },
    { what: `the judge ${name} at the worker` },
  );
};

it('a complete trace is scored, the score is stored, and a breach is reported', async () => {
  const polite = await bench.judge({ type: 'regex_absent', pattern: '(?i)damn' }, { name: 'polite' });
  const fast = await bench.judge({ type: 'max_duration_ms', max: 1000 }, { name: 'fast' });
  await known('fast');
  const [good = '', bad = ''] = await bench.send([
    aCall('Certainly.'),
    aCall('Damn, no.', {}, { agent_id: 'rude-bot' }),
  ]);
  expect(await scoresOf(good)).toEqual({ polite: 1, fast: 1 });
  expect(await scoresOf(bad)).toEqual({ polite: 0, fast: 1 });
  expect(
    await bench.rows(
      `SELECT judge_id, judge_version, judge_name, eval_id, agent_id, score, verdict, reason FROM judge_scores FINAL WHERE trace_id = '${bad}' ORDER BY score`,
    ),
  ).toEqual([
    {
      judge_id: polite,
      judge_version: 1,
      judge_name: 'polite',
      eval_id: '',
      agent_id: 'rude-bot',
      score: 0,
      verdict: 'fail',
      reason: 'response matches the pattern',
    },
    {
      judge_id: fast,
      judge_version: 1,
      judge_name: 'fast',
      eval_id: '',
      agent_id: 'rude-bot',
      score: 1,
      verdict: 'pass',
      reason: '',
    },
  ]);
  expect(
    await bench.rows(
      `SELECT partition = t.partition AS same_partition, log_seq = t.log_seq AS same_seq, started_at = t.started_at AS same_start FROM judge_scores AS s FINAL
       INNER JOIN (SELECT * FROM traces FINAL WHERE sign = 1) AS t ON t.trace_id = s.trace_id WHERE s.trace_id = '${bad}'`,
    ),
  ).toEqual([1, 2].map(() => ({ same_partition: 1, same_seq: 1, same_start: 1 })));
  await eventually(async () => (await bench.told('judge.threshold_breach')).length > 0, { what: 'the breach' });
  const breaches = await bench.told('judge.threshold_breach');
  expect(breaches.filter(({ trace_id }) => trace_id !== bad)).toEqual([]);
  expect(breaches).toEqual([
    {
      event_id: breaches[0]?.event_id,
      event: 'judge.threshold_breach',
      judge_id: polite,
      trace_id: bad,
      score: 0,
      threshold: 1,
      severity: 'critical',
    },
  ]);
  expect(
    await bench.rows(`SELECT judge_name, score FROM analyst_scores WHERE trace_id = '${good}' ORDER BY judge_name`),
  ).toEqual([
    { judge_name: 'fast', score: 1 },
    { judge_name: 'polite', score: 1 },
  ]);
});

it('the prompt and response of a trace with several spans follow the rules for them, in any order of arrival', async () => {
  await bench.judge({ type: 'equals', value: 'the last answer' }, { name: 'answer' });
  await bench.judge({ type: 'equals', value: 'the first question', fields: ['prompt'] }, { name: 'question' });
  await bench.judge({ type: 'equals', value: 'root', fields: ['name'] }, { name: 'name' });
  await bench.judge({ type: 'equals', value: 'm2', fields: ['model'] }, { name: 'model' });
  await bench.judge({ type: 'contains', value: 'eu', fields: ['attributes.place.region'] }, { name: 'region' });
  await known('region');
  const trace_id = `trace-${sent}`;
  const at = Date.now();
  const iso = (ms: number): string => new Date(at + ms).toISOString();
  const span = (span_id: string, from: number, to: number, attributes: Record<string, unknown>, parent?: string) => ({
    trace_id,
    span_id,
    ...(parent === undefined ? {} : { parent_span_id: parent }),
    name: span_id,
    outcome: 'success',
    started_at: iso(from),
    ended_at: iso(to),
    duration_ms: to - from,
    attributes,
  });
  await bench.send([
    span(
      'call-2',
      300,
      400,
      { span_kind: 'llm', model: 'm2', prompt: 'another question', response: 'the last answer' },
      'root',
    ),
    span(
      'call-1',
      100,
      200,
      { span_kind: 'llm', model: 'm1', prompt: 'the first question', response: 'an answer' },
      'root',
    ),
    span('tool', 50, 500, { span_kind: 'tool', prompt: 'a tool call', response: 'a tool result' }, 'root'),
    span('root', 0, 600, { place: { region: 'eu' } }),
  ]);
  expect(await scoresOf(trace_id)).toEqual({ answer: 1, question: 1, name: 1, model: 1, region: 1 });
});

it('only traces in scope are judged', async () => {
  await bench.judge({ type: 'json_valid' }, { name: 'other format', scope: { source_format: ['messages'] } });
  await bench.judge({ type: 'json_valid' }, { name: 'format', scope: { source_format: ['messages', 'custom'] } });
  await bench.judge({ type: 'json_valid' }, { name: 'agent', scope: { agent_id: ['bot'] } });
  await bench.judge({ type: 'json_valid' }, { name: 'tags', scope: { tags: ['prod', 'canary'] } });
  await bench.judge({ type: 'json_valid' }, { name: 'both', scope: { agent_id: ['bot'], tags: ['prod'] } });
  await bench.judge({ type: 'json_valid' }, { name: 'all' });
  await known('all');
  const [none = '', agent = '', tag = '', both = ''] = await bench.send([
    aCall('{}'),
    aCall('{}', {}, { agent_id: 'bot' }),
    aCall('{', { tags: ['canary', 'eu'] }),
    aCall('{}', { tags: ['prod'] }, { agent_id: 'bot' }),
  ]);
  expect(await scoresOf(none)).toEqual({ format: 1, all: 1 });
  expect(await scoresOf(agent)).toEqual({ format: 1, all: 1, agent: 1 });
  expect(await scoresOf(tag)).toEqual({ format: 0, all: 0, tags: 0 });
  expect(await scoresOf(both)).toEqual({ format: 1, all: 1, agent: 1, tags: 1, both: 1 });
});

it('scores come from the newest version and name it; a disabled judge scores no more', async () => {
  const id = await bench.judge({ type: 'contains', value: 'yes' }, { name: 'says yes' });
  await known('says yes');
  const [first = ''] = await bench.send([aCall('yes')]);
  expect(await scoresOf(first)).toEqual({ 'says yes': 1 });
  const patched = await bench.call('PATCH', `/v1/judges/${id}`, {
    name: 'says no',
    rule: { type: 'contains', value: 'no' },
  });
  expect(patched.status).toBe(200);
  await known('says no');
  const [second = ''] = await bench.send([aCall('yes')]);
  expect(await scoresOf(second)).toEqual({ 'says no': 0 });
  expect(
    await bench.rows(
      `SELECT judge_version, judge_name, score FROM judge_scores FINAL WHERE trace_id IN ('${first}', '${second}') ORDER BY judge_version`,
    ),
  ).toEqual([
    { judge_version: 1, judge_name: 'says yes', score: 1 },
    { judge_version: 2, judge_name: 'says no', score: 0 },
  ]);
  expect((await bench.call('DELETE', `/v1/judges/${id}`)).status).toBe(200);
  await eventually(async () => {
    const [trace = ''] = await bench.send([aCall('yes')]);
    return Object.keys((await scoresOf(trace)) as object).length === 0;
  });
});

it('traces complete beside a broken judge', async () => {
  const id = await bench.judge({ type: 'contains', value: 'x' }, { name: 'broken' });
  const bucket = await bench.api.log.bucket('judges');
  const entry = await bucket.get(judgeKey(bench.org(), id));
  await bucket.put(
    judgeKey(bench.org(), id),
    JSON.stringify({
      ...entry?.json<object>(),
      rule: { type: 'regex_absent', fields: ['response'], pattern: '(?=a)' },
    }),
  );
  await bench.judge({ type: 'contains', value: 'x' }, { name: 'whole' });
  await known('whole');
  const [trace = ''] = await bench.send([aCall('x')]);
  expect(await scoresOf(trace)).toEqual({ whole: 1 });
});

it('traces that judging itself made are not judged', async () => {
  await bench.judge({ type: 'json_valid' }, { name: 'any' });
  await known('any');
  const [trace = ''] = await bench.send([aCall('{}', {}, { judge_call: true })]);
  expect(await scoresOf(trace)).toEqual({});
});

it('a late event changes no score', async () => {
  await bench.judge({ type: 'regex_absent', pattern: 'late' }, { name: 'not late' });
  await known('not late');
  const trace_id = `trace-late-${sent}`;
  await bench.send([{ ...aCall('in time'), trace_id, span_id: 'root' }]);
  expect(await scoresOf(trace_id)).toEqual({ 'not late': 1 });
  await bench.send([{ ...aCall('late'), trace_id, parent_span_id: 'root' }]);
  await eventually(
    async () =>
      (await bench.rows<{ spans: number }>(`SELECT spans FROM analyst_traces WHERE trace_id = '${trace_id}'`))[0]
        ?.spans === 2,
    { what: 'the late span' },
  );
  const [after = ''] = await bench.send([aCall('done')]);
  await completedOf(after);
  expect((await bench.told('trace.completed')).filter((payload) => payload['trace_id'] === trace_id)).toHaveLength(1);
  expect(await bench.rows(`SELECT score FROM judge_scores WHERE trace_id = '${trace_id}'`)).toEqual([{ score: 1 }]);
});

it('a trace in scope is queued for each enabled LLM judge once', async () => {
  const made = await bench.call('POST', '/v1/judges', {
    name: 'helpful',
    kind: 'llm',
    prompt_template: 'Was {{response}} helpful?',
    model: 'gpt-4o',
    rubric: { scale: [1, 2, 3, 4, 5], criteria: ['helpful'] },
    threshold: { pass: 4, warn: 3 },
    scope: { agent_id: ['bot'] },
  });
  expect(made.status).toBe(201);
  const { judge_id } = made.json?.['data'] as { judge_id: string };
  await bench.judge({ type: 'json_valid' }, { name: 'rule' });
  await known('rule');
  // A worker that runs LLM judges may remove a task from the stream at once, so the test subscribes
  // to the subject of the stream.
  const found: JudgingTask[] = [];
  bench.api.log.nc.subscribe(judgingSubject('live'), {
    callback: (_error, message) => {
      const task = judgingTaskCodec.decode(message.data, message.headers?.get(FINGERPRINT_HEADER));
      if (task.org_id === bench.org()) found.push(task);
    },
  });
  await bench.api.log.nc.flush();
  const [out = '', trace_id = ''] = await bench.send([aCall('no'), aCall('yes', {}, { agent_id: 'bot' })]);
  await completedOf(out);
  expect(await scoresOf(trace_id)).toEqual({ rule: 0 });
  await eventually(() => found.length > 0, { what: 'the task' });
  expect(found).toEqual([
    {
      task_id: found[0]?.task_id,
      kind: 'live',
      org_id: bench.org(),
      judge_id,
      judge_version: 1,
      agent_id: 'bot',
      eval_id: '',
      chunk: 0,
      trace_ids: [trace_id],
      created_at: found[0]?.created_at,
    },
  ]);
});
