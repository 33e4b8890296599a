// Computes what an organization's days cost: one read, summed by day, by model and by one further
// dimension. Sums are exact; each amount in the response is the nearest number, so the amounts add
// up to the total except for rounding.
import { dateOf, dayOf, startOfDay } from '../../../pipeline/domain/time/days.ts';
import { picoToUsd, usdToPico } from '../../../pipeline/domain/pricing/money.ts';
import { readCostSummary } from '../../../sql/stores/costs.ts';
import { type CostDeps, labelOf } from './costs.ts';
import type { Group, Summary } from './schema.ts';

/** Maximum groups of each breakdown in a response. */
const GROUPS_MAX = 5000;

interface Sum {
  cost_pico_usd: bigint;
  tokens: number;
}

export interface SummaryAnswer {
  data: Summary;
  meta: { truncated: boolean };
}

export async function readSummary(
  { clickhouse, agentMetadata, now }: Pick<CostDeps, 'clickhouse' | 'agentMetadata' | 'now'>,
  org_id: string,
  { days, group_by }: { days: number; group_by: Group },
  signal: AbortSignal,
): Promise<SummaryAnswer> {
  const until = dayOf(now()) + 1;
  const from = until - days;
  const rows = await readCostSummary(
    clickhouse,
    { org_id, from, until, groups_max: GROUPS_MAX + 1, [`by_${group_by}`]: true },
    { signal },
  );
  const byDay = new Map<string, Sum>();
  const byModel = new Map<string, Sum>();
  const byGroup = new Map<string, Sum>();
  let models = 0;
  let groups = 0;
  for (const { part, day, model, name, agent, cost_usd, tokens } of rows) {
    const sum = { cost_pico_usd: usdToPico(cost_usd), tokens };
    if (part === 'day') add(byDay, day, sum);
    else if (part === 'model') {
      models += 1;
      if (models <= GROUPS_MAX) add(byModel, model, sum);
    } else {
      groups += 1;
      if (groups <= GROUPS_MAX)
        add(byGroup, name === '' && agent !== '' ? labelOf(agentMetadata(org_id, agent), group_by) : name, sum);
    }
  }
  const total = [...byDay.values()].reduce((all, { cost_pico_usd }) => all + cost_pico_usd, 0n);
  const data: Summary = {
    period_start: new Date(startOfDay(from)).toISOString(),
    period_end: new Date(startOfDay(until)).toISOString(),
    total_cost_usd: picoToUsd(total),
    by_day: Array.from({ length: days }, (_, index) => {
      const date = dateOf(from + index);
      const sum = byDay.get(date);
      return { date, cost_usd: picoToUsd(sum?.cost_pico_usd ?? 0n), tokens: sum?.tokens ?? 0 };
    }),
    by_model: shares(byModel, total, 'model'),
    ...(group_by === 'model' ? {} : { [`by_${group_by}`]: shares(byGroup, total, group_by) }),
  };
  return { data, meta: { truncated: models > GROUPS_MAX || groups > GROUPS_MAX } };
}

function add(sums: Map<string, Sum>, key: string, { cost_pico_usd, tokens }: Sum): void {
  const known = sums.get(key);
  if (known === undefined) {
    sums.set(key, { cost_pico_usd, tokens });
    return;
  }
  known.cost_pico_usd += cost_pico_usd;
  known.tokens += tokens;
}

/**
 * Returns the shares of a breakdown, costliest first. Groups without cost and tokens are left out,
 * such as events without a model.
 */
function shares(sums: ReadonlyMap<string, Sum>, total: bigint, name: Group): Summary['by_model'] {
  return [...sums]
    .filter(([, { cost_pico_usd, tokens }]) => cost_pico_usd !== 0n || tokens !== 0)
    .sort(([nameA, a], [nameB, b]) =>
      a.cost_pico_usd === b.cost_pico_usd ? (nameA < nameB ? -1 : 1) : a.cost_pico_usd > b.cost_pico_usd ? -1 : 1,
    )
    .map(([value, { cost_pico_usd }]) => ({
      [name]: value === '' ? null : value,
      cost_usd: picoToUsd(cost_pico_usd),
      share: total === 0n ? 0 : Number(cost_pico_usd) / Number(total),
    }));
}
