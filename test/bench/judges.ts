// Judges: the share of the ingest throughput that 50 enabled deterministic judges take, each in
// scope of every trace. Runs with and without them alternate on one service, so that both see the
// same machine.
import { setTimeout as pause } from 'node:timers/promises';
import { BATCH_EVENTS, batchBody, SPANS_PER_TRACE } from './bodies.ts';
import { runLoad, type RunResult } from './ingest.ts';
import { percentile, thousands, type Section, single, atMost } from './report.ts';
import type { RunSql } from './store.ts';
import type { Target } from './target.ts';
import { seededRandom, type Vocabulary } from './vocabulary.ts';

const JUDGES = 50;
const BODIES = 128;
const LANES = 8;
/** Maximum share of the throughput that 50 judges may take. */
const COST_MAX = 0.2;
const TURNS = ['without', 'with', 'with', 'without', 'without', 'with', 'with', 'without'] as const;
type Turn = (typeof TURNS)[number];
/** The worker follows a change within a second. */
const FOLLOW_MS = 1500;
const SETTLE_MS = 3000;

export interface JudgesBenchOptions {
  target: Target;
  runSql: RunSql;
  vocabulary: Vocabulary;
  seconds: number;
  progress: (line: string) => void;
}

const ABSENT = [
  '(?i)as an ai language model',
  '(?i)\\b(?:apologize|apologies|regret)\\b',
  '[A-Za-z0-9._%+-]+@[A-Za-z0-9.-]+\\.[A-Za-z]{2,}',
  '\\b\\d{3}-\\d{2}-\\d{4}\\b',
  '(?i)password\\s*[:=]\\s*\\S+',
  'sk-[A-Za-z0-9]{20,}',
  'https?://\\S+',
  '(?:\\d[ -]?){13,16}',
  '(?i)lorem ipsum',
  '\\bTODO\\b',
];
const PRESENT = [
  '\\S',
  '^[A-Z]',
  '[a-z]+ [a-z]+',
  '(?i)\\b(?:the|and|of)\\b',
  '[.!?]',
  '\\w{3,}',
  '\\bthe\\b',
  '[aeiou]',
  '(?i)[a-z]{5}',
  '\\s',
];

/** Returns 50 rules of all kinds over prompt and response; all but a few of them pass. */
function rules(): Record<string, unknown>[] {
  const both = ['prompt', 'response'];
  const schema = { type: 'object', required: ['answer'], properties: { answer: { type: 'string', minLength: 1 } } };
  const made: Record<string, unknown>[] = [
    ...ABSENT.map((pattern) => ({ type: 'regex_absent', pattern, fields: both })),
    ...PRESENT.map((pattern) => ({ type: 'regex_present', pattern, fields: both })),
    ...['the', 'of', 'and', 'a', ' '].map((value) => ({ type: 'contains', value })),
    ...['DROP TABLE', 'BEGIN PRIVATE KEY', '<script', 'rm -rf', 'Traceback'].map((value) => ({
      type: 'not_contains',
      value,
      fields: both,
    })),
    { type: 'json_valid', fields: ['cost_usd'] },
    { type: 'json_valid', fields: ['duration_ms'] },
    { type: 'json_valid' },
    { type: 'json_schema', schema },
    { type: 'json_schema', schema: { type: 'number', minimum: 0 }, fields: ['cost_usd'] },
    ...[1000, 2000, 4000, 8000, 16_000].map((max) => ({ type: 'max_length', max: 10 * max, fields: both })),
    ...[10_000, 20_000, 60_000, 120_000, 600_000].map((max) => ({ type: 'max_duration_ms', max })),
    ...[1, 2, 5, 10, 100].map((max) => ({ type: 'max_cost_usd', max })),
    ...[
      ['success', 'error'],
      ['success', 'error', 'timeout'],
    ].map((outcomes) => ({ type: 'outcome_is', outcomes })),
    { type: 'not_contains', value: 'agent_x', fields: ['agent_id'] },
    { type: 'contains', value: 'bench', fields: ['tags'] },
    { type: 'equals', value: 'custom', fields: ['source_format'] },
  ];
  return made.slice(0, JUDGES);
}

async function ask(target: Target, method: string, path: string, body?: unknown): Promise<Record<string, unknown>> {
  const response = await fetch(target.url + path, {
    method,
    headers: { 'X-Org-Api-Key': target.key, 'X-Org-Id': target.org, 'Content-Type': 'application/json' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const answer = (await response.json()) as { data: Record<string, unknown> };
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${JSON.stringify(answer)}`);
  return answer.data;
}

async function makeJudges(target: Target): Promise<string[]> {
  const ids: string[] = [];
  for (const [index, rule] of rules().entries()) {
    const body = {
      name: `bench ${index}`,
      kind: 'deterministic',
      rule,
      threshold: { pass: 1, warn: 0 },
      enabled: false,
    };
    ids.push(String((await ask(target, 'POST', '/v1/judges', body))['judge_id']));
  }
  return ids;
}

const median = (values: readonly number[]): number => percentile(values, 0.5);
/** CPU time of the service without the load generator, microseconds an event. */
const cpuOf = ({ cpu_s, acknowledged }: RunResult): number =>
  (Object.values(cpu_s).reduce((sum, used) => sum + used, 0) / acknowledged) * 1e6;

/** Returns the number of stored scores once no more arrive. */
async function settledScores(runSql: RunSql): Promise<number> {
  for (let before = -1; ;) {
    const now = Number((await runSql('SELECT count() FROM judge_scores')).trim());
    if (now === before) return now;
    before = now;
    await pause(SETTLE_MS);
  }
}

export async function benchJudges({
  target,
  runSql,
  vocabulary,
  seconds,
  progress,
}: JudgesBenchOptions): Promise<Section> {
  const random = seededRandom(17);
  const bodies = Array.from({ length: BODIES }, () => batchBody('texts', vocabulary, random));
  const ids = await makeJudges(target);
  const each = Math.max(5, Math.round(seconds / TURNS.length));
  const results: Record<Turn, RunResult[]> = { without: [], with: [] };
  const run = (length: number): Promise<RunResult> =>
    runLoad({
      target,
      runSql,
      format: 'custom',
      bodies,
      bodyEvents: BATCH_EVENTS,
      lanes: LANES,
      rate: Infinity,
      seconds: length,
      progress,
    });
  const enable = async (enabled: boolean): Promise<void> => {
    for (const id of ids) await ask(target, 'PATCH', `/v1/judges/${id}`, { enabled });
    await pause(FOLLOW_MS);
  };
  progress(`judges: ${ids.length} of them, ${TURNS.length} runs of ${each} s`);
  await run(5);
  let scores = 0;
  let traces = 0;
  let is = false;
  for (const turn of TURNS) {
    if (is !== (turn === 'with')) await enable(!is);
    is = turn === 'with';
    const before = await settledScores(runSql);
    const result = await run(each);
    results[turn].push(result);
    const made = (await settledScores(runSql)) - before;
    if (is) {
      scores += made;
      traces += (result.acknowledged / BATCH_EVENTS) * Math.ceil(BATCH_EVENTS / SPANS_PER_TRACE);
    }
    progress(
      `  ${turn}: ${thousands(result.to_queryable_per_s)} events/s, ${cpuOf(result).toFixed(0)} µs CPU an event, ${thousands(made)} scores`,
    );
  }
  const rates = (turn: Turn): number => median(results[turn].map(({ to_queryable_per_s }) => to_queryable_per_s));
  const cpu = (turn: Turn): number => median(results[turn].map(cpuOf));
  const cost = 1 - rates('with') / rates('without');
  return {
    title: `${ids.length} deterministic judges on every trace (batches of ${BATCH_EVENTS}, ${SPANS_PER_TRACE} spans a trace, medians of ${TURNS.length / 2} runs)`,
    rows: [
      {
        what: 'events to queryable, no judge',
        value: `${thousands(rates('without'))}/s`,
        measures: single(rates('without'), 'per_s'),
      },
      {
        what: `events to queryable, ${ids.length} judges`,
        value: `${thousands(rates('with'))}/s`,
        measures: single(rates('with'), 'per_s'),
      },
      {
        what: 'what the judges take of the throughput',
        value: `${(cost * 100).toFixed(1)} %`,
        bar: `≤ ${COST_MAX * 100} %`,
        measures: single(cost, 'share', atMost(COST_MAX)),
      },
      {
        what: 'CPU time of the service an event',
        value: `${cpu('with').toFixed(0)} µs`,
        note: `${cpu('without').toFixed(0)} µs without judges`,
        measures: single(cpu('with'), 'us'),
      },
      {
        what: 'scores stored',
        value: thousands(scores),
        note: `of ${thousands(traces)} traces, ${(scores / traces).toFixed(1)} each`,
        measures: single(scores, 'count'),
      },
    ],
    data: {
      results: Object.fromEntries(
        Object.entries(results).map(([turn, runs]) => [
          turn,
          runs.map((one) => ({ ...one, latencies: one.latencies.length })),
        ]),
      ),
      scores,
    },
  };
}
