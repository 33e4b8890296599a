// The dialog that sets the limits of a resource or of an agent. While a hard limit is typed, it shows
// from which day on that limit would have refused events in the last periods.
import { type ReactElement, useState } from 'react';
import { randomId } from '../../client/random_id.ts';
import { count } from '../../text/format.ts';
import { Button } from '../../ui/button.tsx';
import { Dialog } from '../../ui/dialog.tsx';
import { Field, Input, Select } from '../../ui/field.tsx';
import styles from './costs.module.css';
import { exactAmount, parseLimitOf, WORDS } from './amounts.ts';
import { AGENT_RESOURCES, type AgentResource, type Limits, type Target, useSaveLimits } from './budget_api.ts';
import { formErrors } from './field_error.ts';
import { LimitPreview } from './limit_preview.tsx';

const AGENT_LENGTH_MAX = 512;
const NOT_A_LIMIT = 'Must be a whole number such as 10,000,000 or 10M, or empty for no limit';
const NOT_DOLLARS = 'Must be an amount in US dollars such as 250 or 12.50, or empty for no limit';

const NO_LIMITS: Limits = { soft_limit: null, hard_limit: null };

interface LimitDialogProps {
  target: Target;
  /** The limits before the change. */
  limits: Limits;
  /** Own limits of the agent by resource; left out for the organization. */
  own?: Readonly<Record<AgentResource, Limits>>;
  /** True: the dialog asks for the agent, which `target` leaves empty. */
  asksAgent?: boolean;
  onClose: () => void;
}

const written = (limit: number | null): string =>
  limit === null ? '' : Number.isInteger(limit) ? count(limit) : String(limit);

/** The dialog. */
export function LimitDialog({ target, limits, own, asksAgent = false, onClose }: LimitDialogProps): ReactElement {
  const [draft, setDraft] = useState({
    soft: written(limits.soft_limit),
    hard: written(limits.hard_limit),
    agent_id: target.agent_id ?? '',
    resource: target.agent_id === null ? ('tokens' as const) : target.resource,
  });
  const chosen: Target =
    target.agent_id === null ? target : { resource: draft.resource, agent_id: draft.agent_id.trim() };
  const before = target.agent_id === null ? limits : (own?.[draft.resource] ?? limits);
  const soft_limit = parseLimitOf(chosen.resource, draft.soft);
  const hard_limit = parseLimitOf(chosen.resource, draft.hard);
  const [key, setKey] = useState({ of: '', id: '' });
  const save = useSaveLimits(onClose);
  const isReady = soft_limit !== undefined && hard_limit !== undefined && chosen.agent_id !== '';
  const submit = (): void => {
    if (!isReady || save.isPending) return;
    // The same body keeps its key, so that a second click saves once; another body is another change.
    const of = JSON.stringify([chosen, soft_limit, hard_limit]);
    const id = key.of === of ? key.id : randomId();
    setKey({ of, id });
    save.mutate({ target: chosen, limits: { soft_limit, hard_limit }, before, key: id });
  };
  const removes = soft_limit === null && hard_limit === null;
  return (
    <Dialog
      title={titleOf(target, asksAgent)}
      form="wide"
      onClose={onClose}
      onSubmit={submit}
      footer={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button look="primary" type="submit" keys="Ctrl+Enter" disabled={!isReady} busy={save.isPending}>
            {removes ? 'Remove limits' : 'Save limits'}
          </Button>
        </>
      }
    >
      <Fields
        target={chosen}
        asksAgent={asksAgent}
        draft={draft}
        error={save.error}
        onChange={(patch) => {
          setDraft({ ...draft, ...patch });
        }}
        onResource={(resource) => {
          const { soft_limit: soft, hard_limit: hard } = own?.[resource] ?? NO_LIMITS;
          setDraft({ ...draft, resource, soft: written(soft), hard: written(hard) });
        }}
      />
      <LimitPreview target={chosen} hard_limit={hard_limit ?? null} />
    </Dialog>
  );
}

const titleOf = ({ resource, agent_id }: Target, asksAgent: boolean): string =>
  asksAgent
    ? 'Limit an agent'
    : agent_id === null
      ? `Limit the ${WORDS[resource].name.toLowerCase()} of the organization`
      : `Limit ${agent_id}`;

interface Draft {
  soft: string;
  hard: string;
  agent_id: string;
  resource: AgentResource;
}

interface FieldsProps {
  target: Target;
  asksAgent: boolean;
  draft: Draft;
  error: unknown;
  onChange: (patch: Partial<Draft>) => void;
  onResource: (resource: AgentResource) => void;
}

/** Marks the field that has the focus when the dialog opens. */
const opensHere = (field: HTMLInputElement | null): void => {
  field?.setAttribute('autofocus', '');
};

function Fields({ target, asksAgent, draft, error, onChange, onResource }: FieldsProps): ReactElement {
  const errors = formErrors(error, ['soft_limit', 'hard_limit', 'agent_id']);
  const text = (name: 'soft' | 'hard' | 'agent_id') => ({
    value: draft[name],
    onChange: (event: { target: { value: string } }) => {
      onChange({ [name]: event.target.value });
    },
  });
  const notALimit = target.resource === 'cost_usd' ? NOT_DOLLARS : NOT_A_LIMIT;
  const limit = (name: 'soft' | 'hard', says: string) => ({
    hint: hintOf(target, draft[name], says),
    error:
      parseLimitOf(target.resource, draft[name]) === undefined ? notALimit : (errors.fields[`${name}_limit`] ?? null),
  });
  return (
    <div className={styles.form}>
      {asksAgent && (
        <Field label="Agent" hint="The agent_id of its events" error={errors.fields['agent_id'] ?? null}>
          {(control) => (
            <Input {...control} ref={opensHere} required maxLength={AGENT_LENGTH_MAX} {...text('agent_id')} />
          )}
        </Field>
      )}
      {target.agent_id !== null && <ResourceField resource={draft.resource} onResource={onResource} />}
      <Field label="Hard limit" {...limit('hard', 'Ingest is refused from here on')}>
        {(control) => <Input {...control} ref={asksAgent ? null : opensHere} inputMode="numeric" {...text('hard')} />}
      </Field>
      <Field label="Soft limit" {...limit('soft', 'A warning is sent from here on')}>
        {(control) => <Input {...control} inputMode="numeric" {...text('soft')} />}
      </Field>
      {errors.form !== null && (
        <p role="alert" className={styles.error}>
          {errors.form}
        </p>
      )}
    </div>
  );
}

function ResourceField({
  resource,
  onResource,
}: { resource: AgentResource } & Pick<FieldsProps, 'onResource'>): ReactElement {
  return (
    <Field label="Resource" hint="Each resource of an agent has limits of its own">
      {(control) => (
        <Select
          {...control}
          value={resource}
          onChange={({ target }) => {
            onResource(AGENT_RESOURCES.find((one) => one === target.value) ?? 'tokens');
          }}
        >
          {AGENT_RESOURCES.map((one) => (
            <option key={one} value={one}>
              {WORDS[one].name}
            </option>
          ))}
        </Select>
      )}
    </Field>
  );
}

function hintOf({ resource }: Target, typed: string, says: string): string {
  const limit = parseLimitOf(resource, typed);
  if (limit === undefined) return says;
  return limit === null ? `${says}. Empty: no limit` : `${says}: ${exactAmount(resource, limit)}`;
}
