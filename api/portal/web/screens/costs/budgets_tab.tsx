// Budgets: the gauges of the organization, the agents, the API keys, and the alerts.
import { type ReactElement, useState } from 'react';
import { useOrganization } from '../../client/session.ts';
import { usePageRequest } from '../../shell/page_request.ts';
import { money, moneyExact } from '../../text/format.ts';
import { Button } from '../../ui/button.tsx';
import { ErrorPanel } from '../../ui/error_panel.tsx';
import { Icon } from '../../ui/icons.tsx';
import { Skeleton } from '../../ui/skeleton.tsx';
import panels from '../home/home.module.css';
import { AgentBudgets } from './agent_budgets.tsx';
import { AlertsSection } from './alerts_section.tsx';
import { dayWords, exactAmount, periodWords, rateOf, RESOURCES, type Resource, WORDS } from './amounts.ts';
import { type Budget, type ResourceBudget, useBudget } from './budget_api.ts';
import styles from './costs.module.css';
import { Gauge } from './gauge.tsx';
import { KeyBudgets } from './key_budgets.tsx';
import { toneOf } from './status_tone.ts';
import { LimitDialog } from './limit_dialog.tsx';

/** The tab. */
export default function BudgetsTab(): ReactElement {
  const budget = useBudget();
  usePageRequest('/v1/budgets');
  const { data } = budget;
  return (
    <div className={styles.tab}>
      <section className={panels.section}>
        <h2>{data === undefined ? 'Budget' : `Budget of ${periodWords(data.period_start, data.period_end)}`}</h2>
        {data === undefined && budget.error !== null && (
          <ErrorPanel
            error={budget.error}
            what="the budget"
            onRetry={() => {
              void budget.refetch();
            }}
          />
        )}
        {data === undefined && budget.error === null && <Skeleton rows={5} height={20} />}
        {data !== undefined && <Gauges budget={data} />}
      </section>
      <AgentBudgets budget={data} />
      <KeyBudgets />
      <AlertsSection budget={data} />
    </div>
  );
}

function Gauges({ budget }: { budget: Budget }): ReactElement {
  const reached = RESOURCES.filter((resource) => budget[resource].status === 'hard_exceeded');
  return (
    <>
      <p className={styles.note}>
        Counters restart on {dayWords(budget.period_end)}, 00:00 UTC.{' '}
        <span title={moneyExact(budget.total_cost_usd)}>{money(budget.total_cost_usd)}</span> spent so far in this
        period.
      </p>
      {reached.length > 0 && (
        <p className={styles.alarm} role="alert">
          <Icon name="warning" />
          The hard limit on {reached.map((resource) => WORDS[resource].name.toLowerCase()).join(' and ')} is reached:
          ingest is refused until {dayWords(budget.period_end)} or until the limit is raised.
        </p>
      )}
      <div className={styles.gauges}>
        {RESOURCES.map((resource) => (
          <ResourceGauge key={resource} resource={resource} budget={budget} />
        ))}
      </div>
    </>
  );
}

function ResourceGauge({ resource, budget }: { resource: Resource; budget: Budget }): ReactElement {
  const { can } = useOrganization();
  const [isOpen, setOpen] = useState(false);
  const own = budget[resource];
  const { name, short } = WORDS[resource];
  const period = { start: Date.parse(budget.period_start), end: Date.parse(budget.period_end), now: Date.now() };
  const rate = rateOf({ used: own.used, limit: own.hard_limit }, period);
  return (
    <section className={panels.panel} aria-label={name}>
      <div className={styles.head}>
        <h3>{name}</h3>
        {can('budgets:write') && (
          <Button
            look="quiet"
            className={styles.flush}
            aria-label={`Set limits of ${name.toLowerCase()}`}
            onClick={() => {
              setOpen(true);
            }}
          >
            Set limits
          </Button>
        )}
      </div>
      <p className={panels.value} title={exactAmount(resource, own.used)}>
        {short(own.used)}
      </p>
      <Gauge {...own} projected={rate.projected} />
      <LimitWords own={own} short={short} />
      <p className={styles.small}>{rateWords(own, rate, short, budget.period_end)}</p>
      {isOpen && (
        <LimitDialog
          target={{ resource, agent_id: null }}
          limits={own}
          onClose={() => {
            setOpen(false);
          }}
        />
      )}
    </section>
  );
}

type Short = (amount: number) => string;

function LimitWords({ own, short }: { own: ResourceBudget; short: Short }): ReactElement {
  const { soft_limit, hard_limit, percentage } = own;
  if (soft_limit === null && hard_limit === null) return <p className={styles.small}>No limit</p>;
  return (
    <p className={styles.small}>
      <span className={toneOf(own.status)}>{Math.round(percentage)} %</span> of the{' '}
      {hard_limit === null ? 'soft' : 'hard'} limit · soft {soft_limit === null ? 'none' : short(soft_limit)} · hard{' '}
      {hard_limit === null ? 'none' : short(hard_limit)}
    </p>
  );
}

function rateWords(
  own: ResourceBudget,
  { projected, reached_at }: ReturnType<typeof rateOf>,
  short: Short,
  period_end: string,
): string {
  if (own.used === 0) return 'Nothing used in this period yet';
  const end = `At the rate so far: ${short(projected)} by ${dayWords(period_end)}`;
  return reached_at === null ? end : `${end}; the hard limit is reached on ${dayWords(reached_at)}`;
}
