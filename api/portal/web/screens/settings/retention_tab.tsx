// Retention: what happens to stored data and when, as a line in time; changes that wait for the nightly
// run; and the restore of texts from cold storage.
import { type ReactElement, useState } from 'react';
import { useOrganization } from '../../client/session.ts';
import { RANK, useKeys } from '../../shell/keys.ts';
import { usePageRequest } from '../../shell/page_request.ts';
import { count } from '../../text/format.ts';
import { Button } from '../../ui/button.tsx';
import { Field, Input } from '../../ui/field.tsx';
import { Icon } from '../../ui/icons.tsx';
import { Moment } from '../../ui/moment.tsx';
import { formErrors } from '../costs/field_error.ts';
import costs from '../costs/costs.module.css';
import { Loaded, Section } from './parts.tsx';
import { RestoreSection } from './restore_section.tsx';
import { usePending, useRetention, useSaveRetention } from './retention_api.ts';
import {
  draftOf,
  FIELDS,
  policyOf,
  type Retention,
  type RetentionDraft,
  runsAround,
  stagesOf,
} from './retention_draft.ts';
import styles from './settings.module.css';

const NOT_DAYS = 'Must be a whole number of days, 1 or more';
/** Share of the line for a stage without an end. */
const OPEN_END = 8;

/** The tab. */
export default function RetentionTab(): ReactElement {
  const { org_id } = useOrganization();
  const policy = useRetention();
  // Kept above the form, which begins anew with each policy that is stored.
  const [savedAt, setSavedAt] = useState(0);
  usePageRequest(`/orgs/${encodeURIComponent(org_id)}/retention`);
  return (
    <div className={costs.tab}>
      <Section title="Retention" change={{ permission: 'retention:override', actions: ['retention.update'] }}>
        <p className={costs.note}>
          Days count from the day, UTC, on which a span began. A change takes effect at the next nightly run,{' '}
          <Moment at={runsAround(Date.now()).next} form="full" />, and can be taken back until then.
        </p>
        <Loaded query={policy} what="the retention policy" rows={8}>
          {(stored) => (
            <RetentionForm key={JSON.stringify(stored)} stored={stored} savedAt={savedAt} onSaved={setSavedAt} />
          )}
        </Loaded>
      </Section>
      <RestoreSection />
    </div>
  );
}

/** The stages of a span's data on a line, and in words. */
function Timeline({ policy }: { policy: Retention }): ReactElement {
  const stages = stagesOf(policy);
  return (
    <>
      <div className={styles.bar} aria-hidden="true">
        {stages.map(({ kept, from, until }) => (
          <span
            key={kept}
            className={styles.part}
            data-kept={kept}
            style={{ flexGrow: until === null ? OPEN_END : Math.sqrt(until - from) }}
          >
            {until === null ? '∞' : `day ${count(until)}`}
          </span>
        ))}
      </div>
      <ol>
        {stages.map(({ kept, words, from, until }) => (
          <li key={kept}>
            {from === 0 ? 'From the first day' : `From day ${count(from)}`}
            {until === null ? ' on' : ` to day ${count(until)}`}: {words}
          </li>
        ))}
      </ol>
    </>
  );
}

interface RetentionFormProps {
  stored: Retention;
  /** When this page saved last, milliseconds since the epoch; 0: never. */
  savedAt: number;
  onSaved: (at: number) => void;
}

function RetentionForm({ stored, savedAt, onSaved }: RetentionFormProps): ReactElement {
  const { can } = useOrganization();
  const [draft, setDraft] = useState<RetentionDraft>(() => draftOf(stored));
  const mayChange = can('retention:override');
  const next = policyOf(draft);
  const { change, takeBack } = useSaveRetention(() => {
    onSaved(Date.now());
  });
  const isChanged = JSON.stringify(draft) !== JSON.stringify(draftOf(stored));
  const submit = (): void => {
    if (mayChange && isChanged && !('wrong' in next) && !change.isPending) change.mutate({ next, old: stored });
  };
  useKeys(
    'Retention',
    mayChange ? [{ keys: 'Mod+Enter', label: 'Save the retention policy', run: submit }] : [],
    RANK.panel,
  );
  return (
    <form
      className={costs.form}
      onSubmit={(event) => {
        event.preventDefault();
        submit();
      }}
    >
      <Timeline policy={'wrong' in next ? stored : next} />
      <Pending savedAt={savedAt} stored={stored} onTakeBack={takeBack} />
      <DayFields
        draft={draft}
        wrong={'wrong' in next ? next.wrong : null}
        error={change.error}
        onChange={
          mayChange
            ? (patch) => {
                setDraft({ ...draft, ...patch });
              }
            : null
        }
      />
      {mayChange && (
        <div className={costs.buttons}>
          <Button
            look="primary"
            type="submit"
            keys="Ctrl+Enter"
            disabled={!isChanged || 'wrong' in next}
            busy={change.isPending}
          >
            Save retention
          </Button>
          {isChanged && (
            <Button
              look="quiet"
              onClick={() => {
                setDraft(draftOf(stored));
              }}
            >
              Discard changes
            </Button>
          )}
        </div>
      )}
    </form>
  );
}

interface DayFieldsProps {
  draft: RetentionDraft;
  wrong: keyof RetentionDraft | null;
  error: unknown;
  /** Null for somebody who may not change them. */
  onChange: ((patch: Partial<RetentionDraft>) => void) | null;
}

function DayFields({ draft, wrong, error, onChange }: DayFieldsProps): ReactElement {
  const errors = formErrors(
    error,
    FIELDS.map(({ name }) => name),
  );
  return (
    <>
      <div className={costs.columns}>
        {FIELDS.map(({ id, name, label, never }) => (
          <Field
            key={id}
            label={`${label} (days)`}
            hint={never ? 'Empty: never' : undefined}
            error={wrong === id ? NOT_DAYS : (errors.fields[name] ?? null)}
          >
            {(control) => (
              <Input
                {...control}
                inputMode="numeric"
                readOnly={onChange === null}
                placeholder={never ? 'Never' : undefined}
                value={draft[id]}
                onChange={({ target }) => {
                  onChange?.({ [id]: target.value });
                }}
              />
            )}
          </Field>
        ))}
      </div>
      {errors.form !== null && (
        <p role="alert" className={costs.error}>
          {errors.form}
        </p>
      )}
    </>
  );
}

interface PendingProps {
  savedAt: number;
  stored: Retention;
  onTakeBack: (old: Partial<Retention>) => Promise<void>;
}

/** Says that a change waits for the nightly run, and takes it back. */
function Pending({ savedAt, stored, onTakeBack }: PendingProps): ReactElement | null {
  const fields = usePending(savedAt, stored).data?.fields ?? null;
  const [isBusy, setBusy] = useState(false);
  if (fields === null) return null;
  return (
    <p className={costs.warning} role="status">
      <Icon name="clock" />
      <span className={costs.grow}>
        The policy was changed since the last nightly run. It takes effect at{' '}
        <Moment at={runsAround(Date.now()).next} form="full" />.
      </span>
      <Button
        busy={isBusy}
        onClick={() => {
          setBusy(true);
          void onTakeBack(fields).finally(() => {
            setBusy(false);
          });
        }}
      >
        Take changes back
      </Button>
    </p>
  );
}
