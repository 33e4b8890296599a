// The fields of a monitor that say who is notified: addresses, and webhook endpoints where the person
// may read them.
import { useQuery } from '@tanstack/react-query';
import type { ReactElement } from 'react';
import { apiQuery } from '../../client/api.ts';
import { FRESH } from '../../client/query_client.ts';
import { useOrganization } from '../../client/session.ts';
import type { DraftFieldsProps } from './query_fields.tsx';
import judges from '../judges/judges.module.css';
import { Typed } from './controls.tsx';
import styles from './monitors.module.css';

/** The fields. */
export function ReceiverFields({ draft, errors, onChange }: DraftFieldsProps): ReactElement {
  const { org_id, can } = useOrganization();
  const webhooks = useQuery({
    ...apiQuery(org_id, '/orgs/{org_id}/webhooks', { path: { org_id }, query: { limit: 200 } }),
    enabled: can('webhooks:read'),
    staleTime: FRESH.registry,
  });
  const known = webhooks.data?.data.map(({ webhook_id, url }) => ({ webhook_id, url })) ?? [];
  const missing = draft.endpoints.filter((id) => !known.some(({ webhook_id }) => webhook_id === id));
  const all = [...known, ...missing.map((webhook_id) => ({ webhook_id, url: webhook_id }))];
  return (
    <>
      <Typed
        label="Mail to"
        hint="Addresses, separated by commas. Webhooks that subscribe to monitor.alerting and monitor.resolved are notified in any case"
        error={errors['to'] ?? null}
        placeholder="oncall@example.com"
        maxLength={3000}
        value={draft.emails}
        onChange={(emails) => {
          onChange({ emails });
        }}
      />
      {all.length > 0 && (
        <fieldset className={styles.filters}>
          <legend>Webhooks for this monitor</legend>
          {all.map(({ webhook_id, url }) => (
            <label key={webhook_id} className={judges.check}>
              <input
                type="checkbox"
                checked={draft.endpoints.includes(webhook_id)}
                onChange={({ target }) => {
                  const others = draft.endpoints.filter((id) => id !== webhook_id);
                  onChange({ endpoints: target.checked ? [...others, webhook_id] : others });
                }}
              />
              <span className={styles.breaks}>{url}</span>
            </label>
          ))}
        </fieldset>
      )}
    </>
  );
}
