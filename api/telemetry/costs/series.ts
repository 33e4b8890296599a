// Costs by day and group: the costliest groups, all others together, and the period before. Two
// reads: the sums of each group, from which the shown groups are chosen, and the days of those.
// Sums are exact; each amount in the response is the nearest number.
import { dateOf, dayOf, startOfDay } from '../../../pipeline/domain/time/days.ts';
import { picoToUsd, usdToPico } from '../../../pipeline/domain/pricing/money.ts';
import { readSeriesDays, readSeriesGroups } from '../../../sql/stores/costs.ts';
import { type CostDeps, labelOf } from './costs.ts';
import { type Group, type Series, SERIES_GROUPS_MAX, type SeriesQuery } from './schema.ts';

/** Maximum groups that are read, before agents are joined under their label; the rest is `other`. */
const GROUPS_MAX = 5000;

interface Sum {
  pico: bigint;
  tokens: number;
}

/** Sums of one series: its period, the period before, and each day. */
interface Sums {
  now: Sum;
  before: Sum;
  days: Sum[];
}

interface ShownGroup extends Sums {
  /** Value of each dimension; empty for none. */
  labels: readonly string[];
  /** Keys of the groups of the store that the group consists of. */
  keys: string[];
}

export async function readSeries(
  deps: Pick<CostDeps, 'clickhouse' | 'agentMetadata' | 'now'>,
  org_id: string,
  { days, group_by }: SeriesQuery,
  signal: AbortSignal,
): Promise<Series> {
  const until = dayOf(deps.now()) + 1;
  const from = until - days;
  const asked = { org_id, until, ...flagsOf(group_by) };
  const rows = await readSeriesGroups(
    deps.clickhouse,
    { ...asked, from: Math.max(0, from - days), middle: from, groups_max: GROUPS_MAX + 1 },
    { signal },
  );
  const total = emptySums(days);
  const groups = new Map<string, ShownGroup>();
  for (const row of rows) {
    const sums = {
      now: { pico: usdToPico(row.cost_usd), tokens: row.tokens },
      before: { pico: usdToPico(row.previous_cost_usd), tokens: row.previous_tokens },
    };
    if (row.is_total === 1) addPeriods(total, sums);
    else {
      const labels = [row.first, row.second].slice(0, group_by.length).map((value, index) => {
        const name = group_by[index] ?? 'model';
        return value === '' && isLabel(name) ? labelOf(deps.agentMetadata(org_id, row.agent), name) : value;
      });
      const id = JSON.stringify(labels);
      const group = groups.get(id) ?? { labels, keys: [], ...emptySums(days) };
      groups.set(id, group);
      group.keys.push(row.group_key);
      addPeriods(group, sums);
    }
  }
  const shown = [...groups.values()]
    .filter(({ now }) => now.pico !== 0n || now.tokens !== 0)
    .sort(costliestFirst)
    .slice(0, SERIES_GROUPS_MAX);
  await addDays(deps, { ...asked, from }, shown, total, signal);
  return {
    period_start: new Date(startOfDay(from)).toISOString(),
    period_end: new Date(startOfDay(until)).toISOString(),
    group_by,
    dates: Array.from({ length: days }, (_, index) => dateOf(from + index)),
    groups: shown.map((group) => ({
      group: Object.fromEntries(group_by.map((name, index) => [name, group.labels[index] || null])),
      ...shownSums(group),
    })),
    other: shownSums(shown.reduce(less, total)),
    total: shownSums(total),
  };
}

/** Adds the days of the period to the total and to the groups that are shown. */
async function addDays(
  { clickhouse }: Pick<CostDeps, 'clickhouse'>,
  asked: Omit<Parameters<typeof readSeriesDays>[1], 'group_keys' | 'places'> & { from: number },
  shown: readonly ShownGroup[],
  total: Sums,
  signal: AbortSignal,
): Promise<void> {
  // Without any group nothing cost anything, and the engine takes no empty list of groups.
  if (shown.length === 0) return;
  const group_keys = shown.flatMap(({ keys }) => keys);
  const places = shown.flatMap(({ keys }, place) => keys.map(() => place));
  const rows = await readSeriesDays(clickhouse, { ...asked, group_keys, places }, { signal });
  for (const { on_day, place, cost_usd, tokens } of rows) {
    const sum = { pico: usdToPico(cost_usd), tokens };
    for (const series of [total, shown[place]]) {
      const day = series?.days[on_day - asked.from];
      if (day !== undefined) add(day, sum);
    }
  }
}

const isLabel = (group: Group): group is 'realm' | 'department' => group === 'realm' || group === 'department';

function flagsOf(group_by: readonly Group[]): Record<string, true> {
  const [first = 'model', second = 'none'] = group_by;
  return Object.fromEntries(
    [`first_${first}`, `second_${second}`, ...group_by.filter(isLabel).map((name) => `by_${name}`)].map((flag) => [
      flag,
      true as const,
    ]),
  );
}

const none = (): Sum => ({ pico: 0n, tokens: 0 });
const emptySums = (days: number): Sums => ({ now: none(), before: none(), days: Array.from({ length: days }, none) });

function add(to: Sum, { pico, tokens }: Sum): void {
  to.pico += pico;
  to.tokens += tokens;
}

function addPeriods(to: Sums, { now, before }: Pick<Sums, 'now' | 'before'>): void {
  add(to.now, now);
  add(to.before, before);
}

/** Returns the sums of `all` without those of `one`. */
function less(all: Sums, one: Sums): Sums {
  const minus = (a: Sum, b: Sum | undefined): Sum => ({
    pico: a.pico - (b?.pico ?? 0n),
    tokens: a.tokens - (b?.tokens ?? 0),
  });
  return {
    now: minus(all.now, one.now),
    before: minus(all.before, one.before),
    days: all.days.map((day, index) => minus(day, one.days[index])),
  };
}

function costliestFirst(a: ShownGroup, b: ShownGroup): number {
  if (a.now.pico !== b.now.pico) return a.now.pico > b.now.pico ? -1 : 1;
  if (a.now.tokens !== b.now.tokens) return b.now.tokens - a.now.tokens;
  return a.labels.join('\n') < b.labels.join('\n') ? -1 : 1;
}

function shownSums({ now, before, days }: Sums): Series['total'] {
  return {
    cost_usd: picoToUsd(now.pico),
    tokens: now.tokens,
    previous_cost_usd: picoToUsd(before.pico),
    previous_tokens: before.tokens,
    by_day: { cost_usd: days.map(({ pico }) => picoToUsd(pico)), tokens: days.map(({ tokens }) => tokens) },
  };
}
