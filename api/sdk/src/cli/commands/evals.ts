// Runs an eval, waits for its end and decides whether a pipeline may go on.
import { setTimeout as pause } from 'node:timers/promises';
import type { Eval, MillraceClient } from '../../client.ts';
import { type Call, type Command, EXIT, type ExitCode, type Given, Unreachable, UsageError } from '../command.ts';
import { count } from '../output.ts';
import { Progress } from '../progress.ts';
import type { Column } from '../table.ts';

const ASK_EVERY_MS = 1000;
const METRICS = ['pass_rate', 'mean_score', 'p50_score'] as const;
type Metric = (typeof METRICS)[number];
type Stats = NonNullable<Eval['stats']>;

const COLUMNS: readonly Column<Eval>[] = [
  { title: 'EVAL', value: ({ eval_id }) => eval_id, isWhole: true },
  { title: 'STATUS', value: ({ status }) => status },
  { title: 'RESULTS', value: ({ stats }) => stats?.total, isRight: true },
  { title: 'PASSED', value: ({ stats }) => stats?.passed, isRight: true },
  { title: 'WARNED', value: ({ stats }) => stats?.warned, isRight: true },
  {
    title: 'FAILED',
    value: ({ stats }) => stats?.failed,
    isRight: true,
    tone: ({ stats }) => ((stats?.failed ?? 0) > 0 ? 'bad' : null),
  },
  {
    title: 'ERRORS',
    value: ({ stats }) => stats?.errors,
    isRight: true,
    tone: ({ stats }) => ((stats?.errors ?? 0) > 0 ? 'bad' : null),
  },
  { title: 'MEAN', value: ({ stats }) => stats?.mean_score?.toFixed(3), isRight: true },
];

export const evalsRun: Command = {
  name: 'evals run',
  usage: '',
  about: 'Judges a dataset or stored traces, waits for the end, and fails below a bound',
  args: [0, 0],
  options: {
    judge: { type: 'string', value: 'ID', about: 'Judge; required' },
    dataset: { type: 'string', value: 'ID', about: 'Dataset, each item of which is sent to the model and judged' },
    prompt: { type: 'string', value: 'NAME', about: 'Prompt of a dataset run: name, name@version or name@label' },
    model: { type: 'string', value: 'MODEL', about: 'Model of a dataset run. Default: that of the prompt' },
    trace: { type: 'string', multiple: true, value: 'ID', about: 'Stored trace to judge; may be repeated' },
    sample: { type: 'string', value: 'N', about: 'Number of stored traces to judge' },
    since: {
      type: 'string',
      value: 'TIME',
      about: 'With --sample: traces from then on; ISO 8601, or an age such as 24h',
    },
    'fail-under': { type: 'string', value: 'NUMBER', about: 'Exit code 1 if the metric is below this' },
    metric: {
      type: 'string',
      value: 'METRIC',
      about: `${METRICS.join(', ')}. Default: pass_rate, where errors did not pass`,
    },
    timeout: { type: 'string', value: 'SECONDS', about: 'Bound of the whole run. Default: 3600' },
  },
  run: async ({ client, given, out, signal }) => {
    const bound = given.number('fail-under');
    const metric = given.choice('metric', METRICS) ?? 'pass_rate';
    const timeoutMs = given.whole('timeout', { min: 1, max: 604_800, fallback: 3600 }) * 1000;
    const started = await start(client, given);
    out.note(`Eval ${started.eval_id} runs.`);
    const ended = await endOf(client, started, { timeoutMs, signal });
    await out.records([ended], COLUMNS);
    if (ended.status !== 'complete') {
      out.note(`The eval is ${ended.status}${ended.error === null ? '' : `: ${ended.error}`}.`);
      return EXIT.gate;
    }
    return bound === undefined ? EXIT.ok : gate(ended, metric, bound, out);
  },
};

/** @throws UsageError unless the options name exactly one thing to judge */
async function start(client: MillraceClient, given: Given): Promise<Eval> {
  const judge_id = given.required('judge');
  const [dataset, traces, sample] = [given.text('dataset'), given.list('trace'), given.text('sample')];
  if ([dataset !== undefined, traces.length > 0, sample !== undefined].filter(Boolean).length !== 1)
    throw new UsageError('evals run takes one of --dataset, --trace and --sample');
  if (dataset !== undefined) {
    const [prompt_version, model] = [given.text('prompt'), given.text('model')];
    return client.dataset(dataset).run({
      judge_id,
      ...(prompt_version === undefined ? {} : { prompt_version }),
      ...(model === undefined ? {} : { model }),
      async: true,
    });
  }
  const limit = given.whole('sample', { min: 1, max: 100_000, fallback: 1 });
  const since = given.time('since');
  const subject =
    traces.length > 0 ? { trace_ids: traces } : { sample: { limit, ...(since === undefined ? {} : { since }) } };
  const { data } = await client.request<{ data: Eval }>('POST', '/v1/evals', {
    body: { judge_id, ...subject, async: true },
  });
  return data;
}

/** @throws Unreachable when it takes too long, or is interrupted; the eval goes on then */
async function endOf(
  client: MillraceClient,
  started: Eval,
  { timeoutMs, signal }: { timeoutMs: number; signal: Call['signal'] },
): Promise<Eval> {
  const path = `/v1/evals/${encodeURIComponent(started.eval_id)}`;
  const until = performance.now() + timeoutMs;
  const progress = new Progress('judged');
  try {
    for (let run = started; ;) {
      progress.show(run.progress.done, run.progress.total);
      if (run.status !== 'running') return run;
      if (performance.now() > until || signal.aborted)
        throw new Unreachable(`the eval has not ended; it goes on as ${started.eval_id}`);
      await pause(ASK_EVERY_MS, undefined, { signal }).catch(() => undefined);
      run = (await client.get<{ data: Eval }>(path)).data;
    }
  } finally {
    progress.end();
  }
}

function gate({ stats }: Eval, metric: Metric, bound: number, out: Call['out']): ExitCode {
  const value = stats === null ? null : valueOf(stats, metric);
  const passed = value !== null && value >= bound;
  const shown = value === null ? 'not there, because nothing was judged' : String(Number(value.toFixed(4)));
  out.note(
    `${metric} is ${shown}${passed ? `, at least ${bound}` : `; ${bound} is needed`} (${count(stats?.total ?? 0)} results).`,
  );
  return passed ? EXIT.ok : EXIT.gate;
}

const valueOf = (stats: Stats, metric: Metric): number | null =>
  metric === 'pass_rate' ? (stats.total === 0 ? null : stats.passed / stats.total) : stats[metric];
