// Where costs and use are going: the cost of the coming days after those that are known, and the use of
// the budget period against its limits, both with the interval of the forecast.
import { useQuery } from '@tanstack/react-query';
import { type ReactElement, useMemo } from 'react';
import { Chart } from '../../charts/chart.tsx';
import { apiQuery } from '../../client/api.ts';
import { queryClient, readAhead } from '../../client/query_client.ts';
import { useOrganization } from '../../client/session.ts';
import { usePageRequest } from '../../shell/page_request.ts';
import type { Preload } from '../../shell/routes.tsx';
import { exact, money, moneyExact } from '../../text/format.ts';
import { ButtonLink } from '../../ui/button.tsx';
import { ErrorPanel } from '../../ui/error_panel.tsx';
import { Skeleton } from '../../ui/skeleton.tsx';
import { Tabs } from '../../ui/tabs.tsx';
import { useSearchState } from '../../url/use_search_state.ts';
import styles from '../home/home.module.css';
import type { CostSeries } from './cost_groups.ts';
import { costsUrl } from './costs_url.ts';
import { WORDS } from './amounts.ts';
import { costContent, useContent } from './forecast_content.ts';
import {
  AHEAD_DAYS,
  amount,
  type BudgetForecast,
  costWords,
  type CostForecast,
  fitWords,
  lastDayOf,
  limitsOf,
  limitWords,
  type ResourceForecast,
} from './forecast_words.ts';

/** Days of history that a forecast is computed from at most, and today. */
const HISTORY_DAYS = 91;

const costForecast = (org_id: string) => apiQuery(org_id, '/v1/cost/forecast', { query: { days: AHEAD_DAYS } });
const costHistory = (org_id: string) =>
  apiQuery(org_id, '/v1/cost/series', { query: { days: HISTORY_DAYS, group_by: ['model'] } });
const budgetForecast = (org_id: string) => apiQuery(org_id, '/v1/budgets/forecast', {});

/** Starts the requests of the tab. */
export const preload: Preload = ({ org_id }) => {
  readAhead(queryClient.query(costForecast(org_id)));
  readAhead(queryClient.query(costHistory(org_id)));
  readAhead(queryClient.query(budgetForecast(org_id)));
};

/** The tab. */
export default function ForecastTab(): ReactElement {
  usePageRequest(`/v1/cost/forecast?days=${AHEAD_DAYS}`);
  return (
    <div className={styles.stack}>
      <CostAhead />
      <UseAhead />
    </div>
  );
}

function CostAhead(): ReactElement {
  const { org_id } = useOrganization();
  const forecast = useQuery(costForecast(org_id));
  const history = useQuery(costHistory(org_id));
  const error = forecast.error ?? history.error;
  return (
    <section className={styles.section} aria-busy={forecast.isPending || history.isPending}>
      <h2>Cost of the next {AHEAD_DAYS} days</h2>
      {error !== null && (forecast.data === undefined || history.data === undefined) ? (
        <ErrorPanel
          error={error}
          what="the forecast"
          onRetry={() => {
            void forecast.refetch();
            void history.refetch();
          }}
        />
      ) : forecast.data === undefined || history.data === undefined ? (
        <Skeleton rows={12} height={20} />
      ) : (
        <CostChart forecast={forecast.data.data} history={history.data.data} />
      )}
    </section>
  );
}

function CostChart({ forecast, history }: { forecast: CostForecast; history: CostSeries }): ReactElement {
  const content = useMemo(
    () => costContent({ dates: history.dates, costs: history.total.by_day.cost_usd }, forecast),
    [forecast, history],
  );
  const words = costWords(forecast);
  return (
    <>
      <p>
        {words} {fitWords({ ...forecast, r_squared: forecast.model.r_squared })}
      </p>
      <div className={styles.panel}>
        <Chart
          {...content}
          name="Cost by day and its forecast"
          summary={words}
          axis="Day (UTC)"
          format={money}
          exact={moneyExact}
        />
      </div>
    </>
  );
}

function UseAhead(): ReactElement {
  const { org_id } = useOrganization();
  const forecast = useQuery(budgetForecast(org_id));
  const { data, error } = forecast;
  return (
    <section className={styles.section} aria-busy={forecast.isPending}>
      <h2>Use of the budget period</h2>
      {error !== null && data === undefined ? (
        <ErrorPanel
          error={error}
          what="the forecast of use"
          onRetry={() => {
            void forecast.refetch();
          }}
        />
      ) : data === undefined ? (
        <Skeleton rows={12} height={20} />
      ) : (
        <UseOfPeriod forecast={data.data} />
      )}
    </section>
  );
}

function UseOfPeriod({ forecast }: { forecast: BudgetForecast }): ReactElement {
  const { org_id, can } = useOrganization();
  const { resources } = forecast;
  const limited = limitsOf(forecast).map(({ forecast: one }) => one);
  const [{ resource: chosen }, change] = useSearchState(costsUrl);
  const shown = resources.find(({ resource }) => resource === chosen) ?? limited[0] ?? resources[0];
  const end = lastDayOf(forecast);
  if (shown === undefined) return <p>No resource is counted.</p>;
  const today = shown.series[0]?.date ?? end;
  return (
    <>
      {(limited.length === 0 ? resources.slice(0, 1) : limited).map((one) => (
        <p key={one.resource}>{limitWords(one, today, end)}</p>
      ))}
      <p>{fitWords(shown)} Use counts on the day (UTC) on which it is received.</p>
      {can('budgets:write') && (
        <ButtonLink href={`/o/${encodeURIComponent(org_id)}/costs/budgets`}>
          {limited.length === 0 ? 'Set a limit' : 'Change limits'}
        </ButtonLink>
      )}
      <div className={styles.panel}>
        <Tabs
          label="Resource"
          selected={shown.resource}
          tabs={resources.map(({ resource }) => ({ id: resource, label: WORDS[resource].name }))}
          onSelect={(resource) => {
            change({ resource });
          }}
        />
        <UseChart forecast={shown} words={limitWords(shown, today, end)} />
      </div>
    </>
  );
}

function UseChart({ forecast, words }: { forecast: ResourceForecast; words: string }): ReactElement {
  const { resource } = forecast;
  const content = useMemo(() => useContent(forecast), [forecast]);
  return (
    <Chart
      {...content}
      name={`${WORDS[resource].name} since the start of the period`}
      summary={words}
      axis="Day (UTC)"
      format={(value) => amount(resource, value)}
      exact={exact}
      tableKey={false}
    />
  );
}
