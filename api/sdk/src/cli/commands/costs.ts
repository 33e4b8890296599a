// Shows what the organization spent.
import { type Command, EXIT } from '../command.ts';
import { barOf, count, usd } from '../output.ts';
import type { Column } from '../table.ts';

const GROUPS = ['model', 'agent_id', 'department', 'realm'] as const;

interface Group {
  group: string | null;
  cost_usd: number;
  share: number;
}
interface Day {
  date: string;
  cost_usd: number;
  tokens: number;
}

/** Returns a column that shows how costs compare. */
function barColumn<T extends { cost_usd: number }>(records: readonly T[]): Column<T> {
  const largest = Math.max(0, ...records.map(({ cost_usd }) => cost_usd));
  return { title: '', value: ({ cost_usd }) => barOf(cost_usd, largest), isOptional: true };
}

const dayColumns = (days: readonly Day[]): readonly Column<Day>[] => [
  { title: 'DAY', value: ({ date }) => date, isWhole: true },
  { title: 'COST', value: ({ cost_usd }) => usd(cost_usd), isRight: true },
  { title: 'TOKENS', value: ({ tokens }) => count(tokens), isRight: true },
  barColumn(days),
];

export const costs: Command = {
  name: 'costs',
  usage: '',
  about: 'Shows costs by model, agent, department or realm, or by day',
  args: [0, 0],
  options: {
    days: { type: 'string', value: 'N', about: 'Days up to today. Default: 30' },
    by: { type: 'string', value: 'WHAT', about: `${GROUPS.join(', ')} or day. Default: model` },
  },
  run: async ({ client, given, out }) => {
    const days = given.whole('days', { min: 1, max: 365, fallback: 30 });
    const by = given.choice('by', [...GROUPS, 'day']) ?? 'model';
    const { data } = await client.get<{ data: Record<string, unknown> }>('/v1/cost/summary', {
      days,
      group_by: by === 'day' ? undefined : by,
    });
    const total = data['total_cost_usd'] as number;
    const byDay = (data['by_day'] ?? []) as Day[];
    if (by === 'day') await out.records(byDay, dayColumns(byDay));
    else {
      const groups = data[`by_${by}`] as (Record<string, string | null> & Omit<Group, 'group'>)[];
      const columns: readonly Column<(typeof groups)[number]>[] = [
        { title: by.toUpperCase(), value: (group) => group[by] },
        { title: 'COST', value: ({ cost_usd }) => usd(cost_usd), isRight: true },
        { title: 'SHARE', value: ({ share }) => `${(share * 100).toFixed(1)} %`, isRight: true },
        barColumn(groups),
      ];
      await out.records(groups, columns, `Nothing was spent in ${days} days.`);
    }
    if (out.isTable) out.note(`Total of ${days} days: ${usd(total)}`);
    return EXIT.ok;
  },
};
