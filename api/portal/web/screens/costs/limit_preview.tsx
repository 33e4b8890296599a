// The answer to "what would this hard limit have refused": the current period and the two before it.
import type { ReactElement } from 'react';
import { RequestError } from '../../client/error.ts';
import { cx } from '../../ui/cx.ts';
import { Icon } from '../../ui/icons.tsx';
import numbers from '../../ui/number_table.module.css';
import { dayWords, exactAmount, periodWords, shareWords, WORDS } from './amounts.ts';
import { type BudgetPreview, type Target, usePreview } from './budget_api.ts';
import styles from './costs.module.css';
import { useSettled } from '../../lists/use_settled.ts';

type Period = BudgetPreview['periods'][number];

interface LimitPreviewProps {
  target: Target;
  hard_limit: number | null;
}

/** The table, or what is missing for it. */
export function LimitPreview({ target, hard_limit }: LimitPreviewProps): ReactElement {
  const limit = useSettled(hard_limit);
  const agent_id = useSettled(target.agent_id);
  const asked: Target = agent_id === null || target.agent_id === null ? target : { ...target, agent_id };
  const preview = usePreview(asked, limit);
  const { data } = preview;
  if (limit === null || agent_id === '')
    return <p className={styles.note}>Type a hard limit to see from which day on it would have refused events.</p>;
  if (preview.error !== null)
    return (
      <p role="alert" className={styles.error}>
        The last periods could not be read:{' '}
        {preview.error instanceof RequestError ? preview.error.detail : preview.error.message}
      </p>
    );
  if (data === undefined) return <p className={styles.note}>Reading the last periods …</p>;
  const [current] = data.periods;
  const isOld = preview.isPlaceholderData || hard_limit !== limit;
  return (
    <div className={cx(styles.preview, isOld && 'dimmed')} role="status" aria-busy={isOld}>
      {current !== undefined && <Now current={current} />}
      <div className={numbers.scroll}>
        <table className={numbers.table}>
          <caption>Hard limit of {exactAmount(target.resource, data.hard_limit)} in the last periods (UTC)</caption>
          <thead>
            <tr>
              <th scope="col">Period</th>
              <th scope="col">Used</th>
              <th scope="col">Refused from</th>
              <th scope="col">Beyond the limit</th>
            </tr>
          </thead>
          <tbody>
            {data.periods.map((period, index) => (
              <PeriodRow key={period.period_start} period={period} resource={target.resource} isCurrent={index === 0} />
            ))}
          </tbody>
        </table>
      </div>
    </div>
  );
}

function Now({ current }: { current: Period }): ReactElement | null {
  if (current.reached_on === null) return null;
  return (
    <p className={styles.warning}>
      <Icon name="warning" />
      Use has already reached this limit: saving it refuses events at once, until {dayWords(current.period_end)}.
    </p>
  );
}

interface PeriodRowProps {
  period: Period;
  resource: Target['resource'];
  isCurrent: boolean;
}

function PeriodRow({ period, resource, isCurrent }: PeriodRowProps): ReactElement {
  const { used, reached_on, beyond_limit } = period;
  const { short } = WORDS[resource];
  return (
    <tr>
      <th scope="row">
        {periodWords(period.period_start, period.period_end)}
        {isCurrent && ' so far'}
      </th>
      <td title={exactAmount(resource, used)}>{short(used)}</td>
      <td className={reached_on === null ? undefined : styles.bad}>
        {reached_on === null ? 'Nothing refused' : dayWords(reached_on)}
      </td>
      <td title={exactAmount(resource, beyond_limit)}>
        {reached_on === null ? '–' : `${short(beyond_limit)} (${shareWords(beyond_limit, used)})`}
      </td>
    </tr>
  );
}
