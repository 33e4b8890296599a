// Judging when the worker is killed with kill -9: at whatever moment, no trace is scored twice and
// none is skipped. The next worker reads from the store what its memory does not hold.
import { afterAll, beforeAll, beforeEach, expect, it, vi } from 'vitest';
import { startWorker, type TestWorker } from '../../support/pipeline.ts';
import { eventually } from '../../support/wait.ts';
import { type JudgeBench, openJudgeBench } from './a_judge.ts';

vi.setConfig({ testTimeout: 120_000, hookTimeout: 90_000 });

let bench: JudgeBench;
let worker: TestWorker | null = null;

const start = async (grace: number): Promise<void> => {
  worker = startWorker({
    natsUrl: bench.nats.url,
    clickhouseUrl: bench.database.url,
    more: { SERVICE_TRACE_GRACE_MS: String(grace), SERVICE_TRACE_IDLE_MS: String(grace) },
  });
  await worker.ready;
};
const kill = async (): Promise<void> => {
  worker?.kill('SIGKILL');
  await worker?.exited;
};

beforeAll(async () => {
  bench = await openJudgeBench();
});
beforeEach(() => bench.newOrg());
afterAll(async () => {
  await kill();
  await bench.close();
});

const ROUNDS = 3;
const TRACES = 150;

it('scores every trace once although the worker is killed repeatedly', async () => {
  await bench.judge({ type: 'contains', value: 'even' }, { name: 'even' });
  await bench.judge({ type: 'regex_present', pattern: '^question \\d+$', fields: ['prompt'] }, { name: 'asked' });
  await bench.judge({ type: 'contains', value: 'x', fields: ['attributes.mark'] }, { name: 'marked' });
  await start(100);
  const scored = async (): Promise<number> =>
    (
      await bench.rows<{ n: number }>(`SELECT toUInt64(count()) AS n FROM judge_scores WHERE org_id = '${bench.org()}'`)
    )[0]?.n ?? 0;
  for (let round = 0; round < ROUNDS; round += 1) {
    for (let part = 0; part < 3; part += 1) {
      const from = round * TRACES + part * (TRACES / 3);
      await bench.send(
        Array.from({ length: TRACES / 3 }, (_, i) => ({
          name: 'call',
          outcome: 'success',
          duration_ms: 1,
          trace_id: `t-${bench.org()}-${from + i}`,
          attributes: {
            prompt: `question ${from + i}`,
            response: (from + i) % 2 === 0 ? 'even' : 'odd',
            mark: 'x',
          },
        })),
      );
    }
    // Each round kills the worker at another moment between landing, publishing and writing the
    // checkpoint.
    const before = await scored();
    await eventually(async () => (await scored()) > before + round * 20, { what: 'some scores' });
    await kill();
    // A judge is created between two rounds: existing scores keep their version, and their traces
    // are not scored again.
    if (round === 1) await bench.judge({ type: 'json_valid' }, { name: 'new' });
    await start(100);
  }
  const total = ROUNDS * TRACES;
  await eventually(
    async () => new Set((await bench.told('trace.completed')).map(({ trace_id }) => trace_id)).size === total,
    {
      what: 'every trace told',
    },
  );
  const where = `org_id = '${bench.org()}' AND judge_name != 'new'`;
  expect(
    await bench.rows(
      `SELECT judge_name, toUInt64(count()) AS rows, toUInt64(uniqExact(trace_id)) AS traces, toUInt64(sum(score)) AS passed FROM judge_scores FINAL WHERE ${where} GROUP BY judge_name ORDER BY judge_name`,
    ),
  ).toEqual([
    { judge_name: 'asked', rows: total, traces: total, passed: total },
    { judge_name: 'even', rows: total, traces: total, passed: total / 2 },
    { judge_name: 'marked', rows: total, traces: total, passed: total },
  ]);
  // FINAL does not merely hide duplicates: the new owner did not write scores of the former owner
  // again.
  expect(
    await bench.rows(
      `SELECT toUInt64(count() - uniqExact(trace_id, judge_id)) AS doubled FROM judge_scores WHERE ${where}`,
    ),
  ).toEqual([{ doubled: 0 }]);
  const told = await bench.told('trace.completed');
  for (const payload of told) {
    const even = Number(String(payload['trace_id']).split('-').at(-1)) % 2 === 0 ? 1 : 0;
    expect(payload['judge_scores']).toMatchObject({ even, asked: 1, marked: 1 });
  }
  const breaches = await bench.told('judge.threshold_breach');
  const named = await bench.rows<{ judge_id: string }>(
    `SELECT DISTINCT judge_id FROM judge_scores WHERE judge_name = 'even'`,
  );
  const odd = breaches.filter(({ judge_id }) => named.some((one) => one.judge_id === judge_id));
  await eventually(
    async () => new Set((await bench.told('judge.threshold_breach')).map(({ event_id }) => event_id)).size >= total / 2,
  );
  expect(new Set(odd.map(({ event_id }) => event_id)).size).toBe(new Set(odd.map(({ trace_id }) => trace_id)).size);
});

it('judges an open trace of a former owner by all of its spans', async () => {
  await kill();
  await start(60_000);
  await bench.judge({ type: 'equals', value: 'the first question', fields: ['prompt'] }, { name: 'first prompt' });
  await bench.judge({ type: 'equals', value: 'the last answer' }, { name: 'last response' });
  await bench.judge({ type: 'equals', value: 'custom', fields: ['source_format'] }, { name: 'format' });
  await bench.judge(
    {
      type: 'equals',
      value: '{"deep":"the first question, at length, so that it is folded into a reference"}',
      fields: ['attributes.input'],
    },
    { name: 'input' },
  );
  const trace_id = `t-open-${bench.org()}`;
  const at = Date.now();
  const call = (place: number, prompt: string, response: string, more: Record<string, unknown> = {}) => ({
    trace_id,
    span_id: `s${place}`,
    name: 'call',
    outcome: 'success',
    started_at: new Date(at + place * 100).toISOString(),
    ended_at: new Date(at + place * 100 + 50).toISOString(),
    duration_ms: 50,
    ...(place === 0 ? {} : { parent_span_id: 's0' }),
    attributes: { span_kind: 'llm', model: 'm', prompt, response, ...more },
  });
  const root = {
    ...call(0, '', ''),
    attributes: { input: { deep: 'the first question, at length, so that it is folded into a reference' } },
  };
  await bench.send([root, call(1, 'the first question', 'an answer')]);
  await eventually(
    async () =>
      (await bench.rows<{ n: number }>(`SELECT toUInt64(count()) AS n FROM spans WHERE trace_id = '${trace_id}'`))[0]
        ?.n === 2,
    { what: 'the first half' },
  );
  await kill();
  // The event waits in the ingest log when the new owner takes over. The new owner judges the trace
  // by the stored spans and the event that it reads.
  await bench.send([call(2, 'a later question', 'the last answer')]);
  await start(300);
  await eventually(async () =>
    (await bench.told('trace.completed')).some((payload) => payload['trace_id'] === trace_id),
  );
  const completed = (await bench.told('trace.completed')).filter((payload) => payload['trace_id'] === trace_id).at(-1);
  expect(completed?.['judge_scores']).toMatchObject({ 'last response': 1, format: 1, input: 1 });
  expect(
    await bench.rows(
      `SELECT judge_name, score FROM judge_scores FINAL WHERE trace_id = '${trace_id}' AND judge_name IN ('last response', 'format') ORDER BY judge_name`,
    ),
  ).toEqual([
    { judge_name: 'format', score: 1 },
    { judge_name: 'last response', score: 1 },
  ]);
});
