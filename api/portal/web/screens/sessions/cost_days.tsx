// Cost by day as bars, with the same numbers as a table behind a button.
import { type ReactElement, useState } from 'react';
import type { Answer } from '../../client/api.ts';
import { count, money, moneyExact } from '../../text/format.ts';
import { Button } from '../../ui/button.tsx';
import numbers from '../../ui/number_table.module.css';
import { dayTicks } from '../costs/cost_days.ts';
import styles from './cost_days.module.css';

type Day = Answer<'/v1/users/{user_id}'>['data']['by_day'][number];

/** The bars, oldest day first. Days are UTC. */
export function CostDays({ days }: { days: readonly Day[] }): ReactElement {
  const [table, setTable] = useState(false);
  const top = Math.max(0, ...days.map(({ cost_usd }) => cost_usd));
  const ticks = dayTicks(days.map(({ date }) => date));
  const total = days.reduce((sum, { cost_usd }) => sum + cost_usd, 0);
  return (
    <div className={styles.days}>
      <div
        className={styles.bars}
        role="img"
        aria-label={`${money(total)} in ${days.length} days, at most ${money(top)} a day.`}
      >
        {days.map((day) => (
          <span
            key={day.date}
            className={styles.slot}
            title={`${day.date}: ${money(day.cost_usd)}, ${count(day.traces)} traces`}
          >
            <span className={styles.bar} style={{ height: `${top === 0 ? 0 : (day.cost_usd / top) * 100}%` }} />
          </span>
        ))}
      </div>
      <p className={styles.axis}>
        <span>{ticks[0]}</span>
        <span>
          {money(total)} in {days.length} days (UTC)
        </span>
        <span>{ticks.at(-1)}</span>
      </p>
      <p className={styles.form}>
        <Button
          look="quiet"
          aria-expanded={table}
          onClick={() => {
            setTable(!table);
          }}
        >
          {table ? 'Hide table' : 'Show as table'}
        </Button>
      </p>
      {table && <DayTable days={days} />}
    </div>
  );
}

function DayTable({ days }: { days: readonly Day[] }): ReactElement {
  return (
    <table className={numbers.table}>
      <thead>
        <tr>
          <th scope="col">Day (UTC)</th>
          <th scope="col">Traces</th>
          <th scope="col">Failed</th>
          <th scope="col">Sessions</th>
          <th scope="col">Cost</th>
        </tr>
      </thead>
      <tbody>
        {days
          .toReversed()
          .filter(({ traces }) => traces > 0)
          .map((day) => (
            <tr key={day.date}>
              <th scope="row">{day.date}</th>
              <td>{count(day.traces)}</td>
              <td>{count(day.failed_traces)}</td>
              <td>{count(day.sessions)}</td>
              <td title={moneyExact(day.cost_usd)}>{money(day.cost_usd)}</td>
            </tr>
          ))}
      </tbody>
    </table>
  );
}
