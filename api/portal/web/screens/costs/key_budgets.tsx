// The API keys with their limits and what they used, each with the button that sets its limits.
import { type ReactElement, useState } from 'react';
import { useOrganization } from '../../client/session.ts';
import { compact } from '../../text/format.ts';
import { Button } from '../../ui/button.tsx';
import { ErrorPanel } from '../../ui/error_panel.tsx';
import numbers from '../../ui/number_table.module.css';
import { Skeleton } from '../../ui/skeleton.tsx';
import panels from '../home/home.module.css';
import { dayWords, exactAmount, WORDS } from './amounts.ts';
import styles from './costs.module.css';
import { Gauge } from './gauge.tsx';
import { type ApiKey, useKeys } from './key_api.ts';
import { KeyDialog } from './key_dialog.tsx';

export const KEY_STATUS = {
  active: 'Active',
  capped: 'Limited by role',
  revoked: 'Revoked',
  expired: 'Expired',
} as const;

/** The section. */
export function KeyBudgets(): ReactElement {
  const { can } = useOrganization();
  const list = useKeys();
  const [open, setOpen] = useState<ApiKey | null>(null);
  const { data } = list;
  return (
    <section className={panels.section} aria-label="API keys">
      <h2>API keys</h2>
      <p className={styles.note}>
        Limits of a key apply beside those of the organization. Use is what has landed in the period of the budget, or
        in this month for a key without one.
      </p>
      {data === undefined && list.error !== null && (
        <ErrorPanel
          error={list.error}
          what="the API keys"
          onRetry={() => {
            void list.refetch();
          }}
        />
      )}
      {data === undefined && list.error === null && <Skeleton rows={4} height={20} />}
      {data?.keys.length === 0 && <p className={styles.note}>The organization has no API key yet.</p>}
      {data !== undefined && data.keys.length > 0 && (
        <KeyTable keys={data.keys} onEdit={can('api_keys:write') ? setOpen : null} />
      )}
      {data !== undefined && data.total > data.keys.length && (
        <p className={styles.note}>
          The newest {data.keys.length} of {data.total} keys are shown.
        </p>
      )}
      {open !== null && (
        <KeyDialog
          apiKey={open}
          onClose={() => {
            setOpen(null);
          }}
        />
      )}
    </section>
  );
}

interface KeyTableProps {
  keys: readonly ApiKey[];
  onEdit: ((key: ApiKey) => void) | null;
}

function KeyTable({ keys, onEdit }: KeyTableProps): ReactElement {
  return (
    <div className={numbers.scroll} role="region" aria-label="API keys and their limits" tabIndex={0}>
      <table className={numbers.table}>
        <thead>
          <tr>
            <th scope="col">Key</th>
            <th scope="col" className={numbers.words}>
              Status
            </th>
            <th scope="col" className={numbers.words}>
              Models
            </th>
            <th scope="col">Requests a minute</th>
            <th scope="col">Tokens a minute</th>
            <th scope="col">Budget</th>
            <th scope="col">Tokens used</th>
            <th scope="col">Cost</th>
            <th scope="col" className={numbers.words}>
              Use of the budget
            </th>
            {onEdit !== null && <th scope="col">Change</th>}
          </tr>
        </thead>
        <tbody>
          {keys.map((key) => (
            <Row key={key.id} apiKey={key} onEdit={onEdit} />
          ))}
        </tbody>
      </table>
    </div>
  );
}

const rateWords = (rate: number | null): string => (rate === null ? '–' : compact(rate));

function Row({ apiKey, onEdit }: { apiKey: ApiKey; onEdit: KeyTableProps['onEdit'] }): ReactElement {
  const { name, key_prefix, status, models, requests_per_minute, tokens_per_minute, budget, expires_at, use } = apiKey;
  return (
    <tr>
      <th scope="row" className={styles.name}>
        {name} <span className={styles.small}>{key_prefix}…</span>
      </th>
      <td className={numbers.words}>
        {KEY_STATUS[status]}
        {expires_at !== null && status !== 'expired' && ` until ${dayWords(expires_at)}`}
      </td>
      <td className={numbers.words}>{models === null ? 'All' : models.join(', ')}</td>
      <td>{rateWords(requests_per_minute)}</td>
      <td>{rateWords(tokens_per_minute)}</td>
      <td>{budget === null ? '–' : `${WORDS[budget.resource].short(budget.hard_limit)} a ${budget.period}`}</td>
      <td title={use === null ? undefined : exactAmount('tokens', use.tokens)}>
        {use === null ? '–' : WORDS.tokens.short(use.tokens)}
      </td>
      <td title={use === null ? undefined : exactAmount('cost_usd', use.cost_usd)}>
        {use === null ? '–' : WORDS.cost_usd.short(use.cost_usd)}
      </td>
      <td className={styles.wide}>{budget !== null && use !== null && <KeyGauge budget={budget} use={use} />}</td>
      {onEdit !== null && (
        <td>
          <Button
            look="quiet"
            className={styles.flush}
            aria-label={`Set limits of ${name}`}
            onClick={() => {
              onEdit(apiKey);
            }}
          >
            Set limits
          </Button>
        </td>
      )}
    </tr>
  );
}

interface KeyGaugeProps {
  budget: NonNullable<ApiKey['budget']>;
  use: NonNullable<ApiKey['use']>;
}

function KeyGauge({ budget, use }: KeyGaugeProps): ReactElement {
  const used = budget.resource === 'tokens' ? use.tokens : use.cost_usd;
  return <Gauge used={used} projected={used} soft_limit={null} hard_limit={budget.hard_limit} status={use.status} />;
}
