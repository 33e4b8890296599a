// Shows what is used of the organization's budgets.
import { type Command, EXIT } from '../command.ts';
import { count, usd } from '../output.ts';
import type { Column } from '../table.ts';

interface Resource {
  used: number;
  soft_limit: number | null;
  hard_limit: number | null;
  percentage: number;
  status: string;
}
interface Budget extends Record<'tokens' | 'storage_mb' | 'sandbox_seconds' | 'cost_usd', Resource> {
  period_start: string;
  period_end: string;
}
type Line = Resource & { resource: string; period_start: string; period_end: string };

const RESOURCES = ['tokens', 'cost_usd', 'storage_mb', 'sandbox_seconds'] as const;

const amount = (resource: string, value: number | null): string | null =>
  value === null ? null : resource === 'cost_usd' ? usd(value) : count(value);

const shareOf = ({ soft_limit, hard_limit, percentage }: Line): string | null =>
  soft_limit === null && hard_limit === null ? null : `${percentage.toFixed(1)} %`;

const COLUMNS: readonly Column<Line>[] = [
  { title: 'RESOURCE', value: ({ resource }) => resource },
  { title: 'USED', value: ({ resource, used }) => amount(resource, used), isRight: true },
  { title: 'SOFT LIMIT', value: ({ resource, soft_limit }) => amount(resource, soft_limit), isRight: true },
  { title: 'HARD LIMIT', value: ({ resource, hard_limit }) => amount(resource, hard_limit), isRight: true },
  { title: 'SHARE', value: shareOf, isRight: true },
  { title: 'STATUS', value: ({ status }) => status, tone: ({ status }) => (status === 'ok' ? null : 'bad') },
];

export const budgets: Command = {
  name: 'budgets',
  usage: '',
  about: 'Shows what is used of the budgets of the current period',
  args: [0, 0],
  options: {
    'fail-over': {
      type: 'string',
      value: 'PERCENT',
      about: 'Exit code 1 if more than this share of a limit is used',
    },
  },
  run: async ({ client, given, out }) => {
    const bound = given.number('fail-over');
    const { data: budget } = await client.get<{ data: Budget }>('/v1/budgets');
    const { period_start, period_end } = budget;
    const lines = RESOURCES.map((resource) => ({ resource, ...budget[resource], period_start, period_end }));
    await out.records(lines, COLUMNS);
    if (out.isTable) out.note(`From ${period_start.slice(0, 10)} until ${period_end.slice(0, 10)}`);
    const over = bound === undefined ? [] : lines.filter(({ percentage }) => percentage > bound);
    for (const { resource, percentage } of over)
      out.note(`${resource}: ${percentage.toFixed(1)} % of the limit is used`);
    return over.length > 0 ? EXIT.gate : EXIT.ok;
  },
};
