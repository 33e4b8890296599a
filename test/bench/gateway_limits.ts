// Measures the time that limits and guards add to a call through the gateway: calls without a limit
// alternate with calls under a limit in USD, with calls of a key that has every limit, and with calls
// whose prompt a judge reads. The limits are never reached, and the judge finds nothing.
import type { LaneTarget } from './lane.ts';
import { atMost, type Measure, percentile, type Section, thousands } from './report.ts';
import { laneTarget, type Target } from './target.ts';

const CONNECTIONS = 10;
const TURNS = 4;
const USD = 1_000_000_000;
const GUARD_MS_MAX = 2;
const KEY_LIMITS = {
  models: ['gpt-4o*', 'claude-*'],
  requests_per_minute: 1e9,
  tokens_per_minute: 1e12,
  budget: { resource: 'cost_usd', hard_limit: USD, period: 'month' },
  labels: { user_id: 'bench', department: 'bench' },
};

/** Returns the milliseconds of each call. */
type Run = (to: LaneTarget, connections: number, until: { seconds: number }) => Promise<number[]>;

async function ask({ url, org, key }: Target, method: string, path: string, body: unknown): Promise<unknown> {
  const response = await fetch(url + path, {
    method,
    headers: { 'X-Org-Api-Key': key, 'X-Org-Id': org, 'Content-Type': 'application/json' },
    body: JSON.stringify(body),
  });
  const answer: unknown = await response.json();
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${JSON.stringify(answer)}`);
  return answer;
}

/** A call, with the runs that make it. */
interface LimitedCall {
  name: string;
  run: Run;
}

interface Kind extends LimitedCall {
  /** Maximum milliseconds that it may add at the median. */
  bar?: number;
  to: LaneTarget;
  begin: () => Promise<unknown>;
  end: () => Promise<unknown>;
}

/** Pause before each run, in which what the run before it recorded lands, in milliseconds. */
const REST_MS = 500;
/** Pause after a guard was switched, in which every process hears of it, in milliseconds. */
const SWITCH_MS = 500;

/** Returns a switch for a judge that reads every prompt for a pattern before its call. */
async function aGuard(target: Target): Promise<(enabled: boolean) => Promise<void>> {
  const rule = { type: 'regex_absent', pattern: '\\d{4}-\\d{4}-\\d{4}-\\d{4}', fields: ['prompt'] };
  const body = {
    kind: 'deterministic',
    name: 'No cards',
    guard: 'block',
    threshold: { pass: 1 },
    rule,
    enabled: false,
  };
  const made = (await ask(target, 'POST', '/v1/judges', body)) as { data: { judge_id: string } };
  return async (enabled) => {
    await ask(target, 'PATCH', `/v1/judges/${made.data.judge_id}`, { enabled });
    await new Promise((resolve) => setTimeout(resolve, SWITCH_MS));
  };
}

/**
 * Returns the time that each kind of limit adds to each call, and a guard to the call with a large
 * prompt.
 */
export async function measureLimits(
  { target, seconds, progress }: { target: Target; seconds: number; progress: (line: string) => void },
  calls: readonly LimitedCall[],
  large: LimitedCall,
): Promise<Pick<Section, 'rows'>> {
  const free = laneTarget(target);
  const scopes = ['gateway:invoke'];
  const made = await ask(target, 'POST', `/orgs/${target.org}/api-keys`, { name: 'bench', scopes, ...KEY_LIMITS });
  const limited = laneTarget({ ...target, key: (made as { raw_key: string }).raw_key });
  const putUsd = (hard_limit: number | null) =>
    ask(target, 'PUT', `/orgs/${target.org}/budget`, { cost_usd: { hard_limit } });
  const nothing = () => Promise.resolve();
  const guard = await aGuard(target);
  const kinds: Kind[] = [
    ...calls.flatMap(({ name, run }): Kind[] => [
      { name: `${name}, added by a limit in USD`, run, to: free, begin: () => putUsd(USD), end: () => putUsd(null) },
      { name: `${name}, added by a key with every limit`, run, to: limited, begin: nothing, end: nothing },
    ]),
    {
      name: `${large.name}, added by a guard of prompts`,
      run: large.run,
      to: free,
      begin: () => guard(true),
      end: () => guard(false),
      bar: GUARD_MS_MAX,
    },
  ];
  const rows: Section['rows'][number][] = [];
  const each = Math.max(1, seconds / (kinds.length * TURNS * 4));
  for (const kind of kinds) rows.push(await measureKind(kind, free, each, progress));
  return { rows };
}

async function measureKind(
  { name, run, to, begin, end, bar }: Kind,
  free: LaneTarget,
  each: number,
  progress: (line: string) => void,
): Promise<Section['rows'][number]> {
  const times = { free: [] as number[], limited: [] as number[] };
  const rest = () => new Promise((resolve) => setTimeout(resolve, REST_MS));
  for (let turn = 0; turn < TURNS; turn++) {
    await rest();
    for (const time of await run(free, CONNECTIONS, { seconds: each })) times.free.push(time);
    await begin();
    await rest();
    for (const time of await run(to, CONNECTIONS, { seconds: each })) times.limited.push(time);
    await end();
  }
  const added = (q: number) => percentile(times.limited, q) - percentile(times.free, q);
  const value = `p50 ${added(0.5).toFixed(2)} ms, p99 ${added(0.99).toFixed(2)} ms`;
  progress(`  ${name}: ${value}`);
  return {
    what: `${name} at ${CONNECTIONS} connections`,
    value,
    bar: bar === undefined ? '' : `p50 < ${bar} ms`,
    note: `without p50 ${percentile(times.free, 0.5).toFixed(2)} ms, with p50 ${percentile(times.limited, 0.5).toFixed(2)} ms; n=${thousands(times.limited.length)}`,
    measures: [0.5, 0.99].map((q): Measure => ({
      name: `p${q * 100}`,
      value: added(q),
      unit: 'ms',
      samples: times.limited.length,
      ...(q === 0.5 && bar !== undefined ? { bar: atMost(bar) } : {}),
    })),
  };
}
