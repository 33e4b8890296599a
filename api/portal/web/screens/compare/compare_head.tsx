// The head of a comparison: both traces, and what their figures changed to.
import { useQuery } from '@tanstack/react-query';
import type { ReactElement } from 'react';
import { Link } from 'wouter';
import { useOrganization } from '../../client/session.ts';
import { compact, count, duration, exact, money, NONE } from '../../text/format.ts';
import { ErrorPanel } from '../../ui/error_panel.tsx';
import { Icon } from '../../ui/icons.tsx';
import { OutcomeMark } from '../../ui/marks.tsx';
import { Moment } from '../../ui/moment.tsx';
import { Skeleton } from '../../ui/skeleton.tsx';
import { Name, shownName } from '../../trace/name.tsx';
import type { OutlineTrace } from '../../trace/model/outline.ts';
import { type ComparedField, compareQuery } from './compare_api.ts';
import styles from './compare.module.css';

export const SIDES = ['Baseline', 'Candidate'] as const;

/** One of the two traces: its outline once it is there, or the id alone. */
export function TraceLine({ side, id, trace }: { side: 0 | 1; id: string; trace: OutlineTrace | null }): ReactElement {
  const { org_id } = useOrganization();
  return (
    <div className={styles.trace}>
      <span className={styles.quiet}>{SIDES[side]}</span>
      {trace !== null && <OutcomeMark outcome={trace.outcome} />}
      <Link href={`/o/${encodeURIComponent(org_id)}/traces/${encodeURIComponent(id)}`} className={styles.name}>
        <Name>{trace === null ? id : shownName(trace.root_span_name ?? id)}</Name>
      </Link>
      {trace !== null && (
        <span className={styles.quiet}>
          <Moment at={trace.started_at} form="full" />
        </span>
      )}
    </div>
  );
}

const LABELS: Readonly<Record<string, string>> = {
  duration_ms: 'Duration',
  cost_usd: 'Cost',
  input_tokens: 'Input tokens',
  output_tokens: 'Output tokens',
  spans: 'Spans',
  judge_score: 'Judge score',
  outcome: 'Outcome',
  agent_id: 'Agent',
  root_span_name: 'Name',
  models: 'Models',
  tags: 'Tags',
};

type Value = ComparedField['baseline'];

/** Writes a value of a field. */
function valueText(field: string, value: Value): string {
  if (value === null) return NONE;
  if (Array.isArray(value)) return value.length === 0 ? NONE : value.join(', ');
  if (typeof value === 'string') return value === '' ? NONE : value;
  if (field === 'duration_ms') return duration(value);
  if (field === 'cost_usd') return money(value);
  return field.endsWith('_tokens') ? compact(value) : field === 'spans' ? count(value) : exact(value);
}

/** Writes a change with its sign: +12 %, −0.4. */
function changeText({ delta, delta_percent }: ComparedField): string {
  if (delta === null || delta === 0) return '';
  const sign = delta > 0 ? '+' : '−';
  if (delta_percent === null) return `${sign}${exact(Math.abs(delta))}`;
  const size = Math.abs(delta_percent);
  return `${sign}${size < 10 ? exact(Math.round(size * 10) / 10) : count(size)} %`;
}

/** The fields of both traces. Those that are equal in words are named in one line. */
export function Fields({ left, right }: { left: string; right: string }): ReactElement {
  const { org_id } = useOrganization();
  const query = useQuery(compareQuery(org_id, left, right));
  if (query.isError)
    return <ErrorPanel error={query.error} what="the comparison" onRetry={() => void query.refetch()} />;
  if (query.data === undefined) return <Skeleton rows={2} height={16} />;
  const { fields } = query.data.data;
  const shown = fields.filter(
    ({ field, baseline, candidate, differs }) =>
      differs || (typeof baseline === 'number' && typeof candidate === 'number' && field !== 'judge_score'),
  );
  const equal = fields.filter((field) => !shown.includes(field) && valueText(field.field, field.baseline) !== NONE);
  return (
    <>
      <dl className={styles.fields}>
        {shown.map((field) => (
          <FieldCell key={field.field} field={field} />
        ))}
      </dl>
      {equal.length > 0 && (
        <p className={styles.quiet}>
          The same on both sides:{' '}
          {equal.map(({ field, baseline }, index) => (
            <span key={field}>
              {index > 0 && ', '}
              {(LABELS[field] ?? field).toLowerCase()} <Name>{valueText(field, baseline)}</Name>
            </span>
          ))}
        </p>
      )}
    </>
  );
}

function FieldCell({ field }: { field: ComparedField }): ReactElement {
  const { field: name, baseline, candidate, differs } = field;
  const change = changeText(field);
  return (
    <div className={styles.field} data-differs={differs}>
      <dt>{LABELS[name] ?? name}</dt>
      <dd title={`${titleOf(baseline)} → ${titleOf(candidate)}`}>
        <Name>{valueText(name, baseline)}</Name> → <Name>{valueText(name, candidate)}</Name>
        {change !== '' && <span className={styles.change}>{change}</span>}
        {differs && (
          <span title={typeof baseline === 'number' ? 'Beyond the threshold of the policy' : 'Differs'}>
            <Icon name="warning" size={12} />
            <span className="visually-hidden">
              {typeof baseline === 'number' ? 'beyond the threshold of the policy' : 'differs'}
            </span>
          </span>
        )}
      </dd>
    </div>
  );
}

const titleOf = (value: Value): string =>
  typeof value === 'number' ? exact(value) : Array.isArray(value) ? value.join(', ') : (value ?? NONE);
