// The tiles of money on the home page: the cost of today against its forecast, and the budget that is
// nearest its limit.
import { useQuery } from '@tanstack/react-query';
import type { ReactElement } from 'react';
import { apiQuery } from '../../client/api.ts';
import { useOrganization } from '../../client/session.ts';
import { money, moneyExact, NONE, percent } from '../../text/format.ts';
import { WORDS } from '../costs/amounts.ts';
import { amount } from '../costs/forecast_words.ts';
import { nearestLimit } from './nearest_limit.ts';
import { Tile } from './tile.tsx';

/** Days of the line: the points of the other tiles are hours. */
const DAYS_SHOWN = 24;
const FRESH_MS = 30_000;

/** Both tiles; render them only for people who may read costs. */
export function CostTiles(): ReactElement {
  const { org_id } = useOrganization();
  const costs = `/o/${encodeURIComponent(org_id)}/costs`;
  const staleTime = FRESH_MS;
  const series = useQuery({
    ...apiQuery(org_id, '/v1/cost/series', { query: { days: DAYS_SHOWN, group_by: ['model'] } }),
    staleTime,
  });
  const forecast = useQuery({ ...apiQuery(org_id, '/v1/cost/forecast', { query: { days: 1 } }), staleTime });
  const budget = useQuery({ ...apiQuery(org_id, '/v1/budgets', {}), staleTime });
  const days = series.data?.data.total.by_day.cost_usd ?? [];
  const today = days.at(-1) ?? null;
  const expected = forecast.data?.data.series[0]?.predicted_usd ?? null;
  const known = (forecast.data?.data.days_of_data ?? 0) > 0;
  const nearest = budget.data === undefined ? null : nearestLimit(budget.data.data);
  return (
    <>
      <Tile
        label="Cost today (UTC)"
        href={costs}
        value={money(today)}
        title={moneyExact(today)}
        note={known ? `${money(expected)} expected for the whole day` : 'No forecast before the first whole day'}
        words={known && today !== null && expected !== null && expected > 0 ? `${percent(today / expected)} of it` : ''}
        isBad={known && today !== null && expected !== null && today > expected}
        values={days}
        period="24 days"
        error={series.error ?? forecast.error}
        loading={series.isPending || forecast.isPending}
      />
      <Tile
        label="Budget nearest its limit"
        href={nearest === null ? costs : `${costs}/budgets`}
        value={nearest === null ? NONE : percent(nearest.percentage / 100)}
        note={
          nearest === null
            ? 'No limit is set'
            : `${WORDS[nearest.resource].name}: ${amount(nearest.resource, nearest.used)} of ${amount(nearest.resource, nearest.limit)}`
        }
        words={nearest?.exceeded === true ? 'A limit is exceeded' : ''}
        isBad={nearest?.exceeded === true}
        error={budget.error}
        loading={budget.isPending}
      />
    </>
  );
}
