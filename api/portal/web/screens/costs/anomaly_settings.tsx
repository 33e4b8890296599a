// The threshold and the look-back of anomalies: two fields, the days that they would have marked, and
// Save. What is typed stands in the address; the days are those of the API.
import { keepPreviousData, useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { type ReactElement, useState } from 'react';
import { apiQuery, send } from '../../client/api.ts';
import { RequestError } from '../../client/error.ts';
import { useOrganization } from '../../client/session.ts';
import { useKeys } from '../../shell/keys.ts';
import { count } from '../../text/format.ts';
import { Button } from '../../ui/button.tsx';
import { ErrorPanel } from '../../ui/error_panel.tsx';
import { Field, Input } from '../../ui/field.tsx';
import { Skeleton } from '../../ui/skeleton.tsx';
import { toast } from '../../ui/toast.tsx';
import { useSearchState } from '../../url/use_search_state.ts';
import styles from '../home/home.module.css';
import { costsUrl } from './costs_url.ts';
import { dayWords } from './amounts.ts';
import { readThreshold } from './threshold.ts';

const DATES_NAMED = 5;

/** Returns the settings, what is typed over them, and the days that this would have marked. */
export function useThreshold(org_id: string, days: number) {
  const [{ z_threshold, lookback_days }, change] = useSearchState(costsUrl);
  const held = useQuery(apiQuery(org_id, '/orgs/{org_id}/cost/anomaly-config', { path: { org_id } }));
  const saved = held.data?.data;
  const read = readThreshold({ z_threshold, lookback_days }, saved);
  const preview = useQuery({
    ...apiQuery(org_id, '/v1/cost/anomalies/preview', { query: { days, ...read.value } }),
    enabled: saved !== undefined && read.value !== null,
    placeholderData: keepPreviousData,
  });
  return {
    held,
    saved,
    read,
    preview,
    typed: { z_threshold, lookback_days },
    changed: read.value !== null && read.changed,
    found: preview.data?.data.days ?? [],
    change,
  };
}

interface AnomalySettingsProps {
  org_id: string;
  days: number;
  threshold: ReturnType<typeof useThreshold>;
}

/** The form. People who may not save can try the settings out. */
export function AnomalySettings({ org_id, days, threshold }: AnomalySettingsProps): ReactElement {
  const { held, saved, read, typed, change } = threshold;
  if (held.error !== null && saved === undefined)
    return (
      <ErrorPanel
        error={held.error}
        what="the threshold"
        onRetry={() => {
          void held.refetch();
        }}
      />
    );
  if (saved === undefined) return <Skeleton rows={3} height={20} />;
  return (
    <div className={styles.section}>
      <div className={styles.tiles}>
        <ThresholdField
          label="z-score"
          hint="Distance from the mean of the days before, in standard deviations"
          error={read.errors.z_threshold}
          start={typed.z_threshold === '' ? String(saved.z_threshold) : typed.z_threshold}
          onType={(z_threshold) => {
            change({ z_threshold }, { replace: true });
          }}
        />
        <ThresholdField
          label="Days to compare with"
          hint="7 to 365 days before a day"
          error={read.errors.lookback_days}
          start={typed.lookback_days === '' ? String(saved.lookback_days) : typed.lookback_days}
          onType={(lookback_days) => {
            change({ lookback_days }, { replace: true });
          }}
        />
      </div>
      <Preview days={days} threshold={threshold} />
      <Save org_id={org_id} threshold={threshold} />
    </div>
  );
}

interface ThresholdFieldProps {
  label: string;
  hint: string;
  error: string | null;
  start: string;
  onType: (text: string) => void;
}

/** A field that keeps what is typed, also while it is empty, which the address does not hold. */
function ThresholdField({ label, hint, error, start, onType }: ThresholdFieldProps): ReactElement {
  const [text, setText] = useState(start);
  return (
    <Field label={label} hint={hint} error={error}>
      {(control) => (
        <Input
          {...control}
          inputMode="decimal"
          value={text}
          onChange={({ currentTarget: { value } }) => {
            setText(value);
            onType(value);
          }}
        />
      )}
    </Field>
  );
}

function Preview({ days, threshold: { preview, found, read } }: Omit<AnomalySettingsProps, 'org_id'>): ReactElement {
  if (preview.error !== null)
    return (
      <ErrorPanel
        error={preview.error}
        what="the preview"
        onRetry={() => {
          void preview.refetch();
        }}
      />
    );
  const named = found.slice(-DATES_NAMED).map(({ date }) => dayWords(date));
  const more = found.length - named.length;
  return (
    <p role="status" aria-busy={preview.isFetching}>
      {read.value === null || preview.data === undefined
        ? 'Enter a threshold to see the days that it would have marked.'
        : found.length === 0
          ? `These settings would have marked none of the last ${count(days)} days.`
          : `These settings would have marked ${count(found.length)} of the last ${count(days)} days: ${named.join(', ')}${more > 0 ? ` and ${count(more)} before` : ''}.`}
    </p>
  );
}

function Save({
  org_id,
  threshold: { read, changed, change },
}: Omit<AnomalySettingsProps, 'days'>): ReactElement | null {
  const { can } = useOrganization();
  const queries = useQueryClient();
  const save = useMutation({
    mutationFn: (body: NonNullable<typeof read.value>) =>
      send(org_id, 'put', '/orgs/{org_id}/cost/anomaly-config', { params: { path: { org_id } }, body }),
    onSuccess: async () => {
      await queries.invalidateQueries({ queryKey: [org_id, '/orgs/{org_id}/cost/anomaly-config'] });
      change({ z_threshold: '', lookback_days: '' }, { replace: true });
      toast({ text: 'The threshold is saved. It applies from the next run on.' });
    },
  });
  const submit = (): void => {
    if (changed && read.value !== null && !save.isPending) save.mutate(read.value);
  };
  const writes = can('budgets:write');
  useKeys('Threshold', writes ? [{ keys: 'Ctrl+Enter', label: 'Save the threshold', run: submit }] : []);
  if (!writes) return null;
  return (
    <>
      <Button look="primary" keys="Ctrl+Enter" busy={save.isPending} disabled={!changed} onClick={submit}>
        Save threshold
      </Button>
      {save.error !== null && (
        <p role="alert">{save.error instanceof RequestError ? save.error.detail : save.error.message}</p>
      )}
    </>
  );
}
