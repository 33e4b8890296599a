// The groups of a cost series as a table: cost, share, change against the period before, cost of a
// call, and the days as a line. The name leads to the traces of the period.
import type { ReactElement } from 'react';
import { Link } from 'wouter';
import { Swatch } from '../../charts/swatch.tsx';
import type { ChartSeries } from '../../charts/chart_shape.ts';
import { Sparkline } from '../../lists/sparkline.tsx';
import { money, moneyExact, NONE, percent, tokens } from '../../text/format.ts';
import numbers from '../../ui/number_table.module.css';
import { changeOf } from '../home/day_numbers.ts';
import { type CostRow, type CostSeries, DIMENSION_WORDS, OTHER, tracesHref } from './cost_groups.ts';
import type { Dimension } from './costs_url.ts';

interface CostTableProps {
  by: Dimension;
  rows: readonly CostRow[];
  parts: readonly ChartSeries[];
  series: CostSeries;
  /** Mean cost of a model call by group; null where calls do not name the dimension. */
  perCall: ReadonlyMap<string, number> | null;
  traces: string;
}

/** The table with the sum of all groups. */
export function CostTable({ by, rows, parts, series, perCall, traces }: CostTableProps): ReactElement {
  const { total, dates } = series;
  const colours = new Map(parts.map(({ id, colour }) => [id, colour]));
  const [from = '', to = ''] = [dates[0], dates.at(-1)];
  return (
    <div
      className={numbers.scroll}
      role="region"
      aria-label={`Cost by ${DIMENSION_WORDS[by].toLowerCase()}`}
      tabIndex={0}
    >
      <table className={numbers.table}>
        <thead>
          <tr>
            {[
              DIMENSION_WORDS[by],
              'Cost',
              'Share',
              'Change',
              'Tokens',
              ...(perCall === null ? [] : ['Cost per call']),
            ].map((head) => (
              <th key={head} scope="col" title={HINTS[head]}>
                {head}
              </th>
            ))}
            <th scope="col">By day</th>
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={row.id}>
              <th scope="row">
                <Swatch colour={colours.get(row.id) ?? 'series-other'} />{' '}
                {row.id === OTHER ? row.label : <Link href={tracesHref(traces, by, row, from, to)}>{row.label}</Link>}
              </th>
              <Amounts sums={row} total={total.cost_usd} />
              {perCall !== null && <PerCall usd={row.value === null ? undefined : perCall.get(row.value ?? OTHER)} />}
              <td>
                <Sparkline values={row.days} label={`${row.label} by day`} />
              </td>
            </tr>
          ))}
          <tr>
            <th scope="row">All</th>
            <Amounts sums={total} total={total.cost_usd} />
            {perCall !== null && <td />}
            <td>
              <Sparkline values={total.by_day.cost_usd} label="All costs by day" />
            </td>
          </tr>
        </tbody>
      </table>
    </div>
  );
}

const HINTS: Readonly<Record<string, string>> = {
  Change: 'Against the period of the same length before',
  'Cost per call': 'Mean cost of the model calls whose spans are still stored',
};

interface AmountsProps {
  sums: Pick<CostRow, 'cost_usd' | 'tokens' | 'previous_cost_usd'> | CostSeries['total'];
  total: number;
}

function Amounts({ sums: { cost_usd, tokens: used, previous_cost_usd }, total }: AmountsProps): ReactElement {
  const change = changeOf(cost_usd, previous_cost_usd);
  return (
    <>
      <td title={moneyExact(cost_usd)}>{money(cost_usd)}</td>
      <td>{total === 0 ? NONE : percent(cost_usd / total)}</td>
      <td title={`${moneyExact(previous_cost_usd)} in the period before`}>
        {change === null ? NONE : `${change > 0 ? '+' : ''}${percent(change)}`}
      </td>
      <td title={String(used)}>{tokens(used)}</td>
    </>
  );
}

const PerCall = ({ usd }: { usd: number | undefined }): ReactElement => <td title={moneyExact(usd)}>{money(usd)}</td>;
