// The policy: settings of the organization for the processing of its telemetry.
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { type ReactElement, useState } from 'react';
import { Link } from 'wouter';
import { apiQuery, send } from '../../client/api.ts';
import { useOrganization } from '../../client/session.ts';
import { RANK, useKeys } from '../../shell/keys.ts';
import { usePageRequest } from '../../shell/page_request.ts';
import { Button } from '../../ui/button.tsx';
import { Field, Input, Select } from '../../ui/field.tsx';
import { toast } from '../../ui/toast.tsx';
import costs from '../costs/costs.module.css';
import { type FormErrors, formErrors } from '../costs/field_error.ts';
import { Loaded, Section } from './parts.tsx';
import { changeOf, draftOf, type Policy, type PolicyChange, type PolicyDraft } from './policy_draft.ts';
import styles from './settings.module.css';

const PATH = '/orgs/{org_id}/policy';
const NOT_A_NUMBER = 'Must be a number, or empty';
const MONTHS = Array.from({ length: 12 }, (_, month) =>
  new Intl.DateTimeFormat('en-GB', { month: 'long', timeZone: 'UTC' }).format(Date.UTC(2026, month)),
);

/** The tab. */
export default function PolicyTab(): ReactElement {
  const { org_id, can } = useOrganization();
  const policy = useQuery({ ...apiQuery(org_id, PATH, { path: { org_id } }), select: ({ data }) => data });
  usePageRequest(`/orgs/${encodeURIComponent(org_id)}/policy`);
  return (
    <Section title="Policy" change={{ permission: 'settings:edit', actions: ['policy.update'] }}>
      <p className={costs.note}>A change takes effect within a second, for what arrives afterwards.</p>
      <Loaded query={policy} what="the policy" rows={8}>
        {(stored) => <PolicyForm key={JSON.stringify(stored)} stored={stored} />}
      </Loaded>
      {can('costs:read') && (
        <p>
          The value of outcomes is set under{' '}
          <Link href={`/o/${encodeURIComponent(org_id)}/costs/outcomes`}>Costs: outcomes</Link>.
        </p>
      )}
    </Section>
  );
}

function useSavePolicy() {
  const { org_id } = useOrganization();
  const queries = useQueryClient();
  return useMutation({
    mutationFn: (body: PolicyChange) =>
      send(org_id, 'put', '/orgs/{org_id}/policy', { params: { path: { org_id } }, body }),
    onSuccess: async () => {
      toast({ text: 'Saved the policy.' });
      await queries.invalidateQueries({ queryKey: [org_id, PATH] });
    },
  });
}

function PolicyForm({ stored }: { stored: Policy }): ReactElement {
  const { can } = useOrganization();
  const [draft, setDraft] = useState(() => draftOf(stored));
  const save = useSavePolicy();
  const mayChange = can('settings:edit');
  const change = changeOf(draft, stored);
  const wrong = 'wrong' in change ? change.wrong : null;
  const isChanged = wrong !== null || Object.keys(change).length > 0;
  const submit = (): void => {
    if (mayChange && isChanged && !('wrong' in change) && !save.isPending) save.mutate(change);
  };
  useKeys('Policy', mayChange ? [{ keys: 'Mod+Enter', label: 'Save the policy', run: submit }] : [], RANK.panel);
  return (
    <form
      className={costs.form}
      onSubmit={(event) => {
        event.preventDefault();
        submit();
      }}
    >
      <fieldset className={styles.group} disabled={!mayChange}>
        <legend className="visually-hidden">Policy</legend>
        <PolicyFields
          draft={draft}
          wrong={wrong}
          errors={formErrors(save.error, Object.keys(draft))}
          onChange={(patch) => {
            setDraft({ ...draft, ...patch });
          }}
        />
      </fieldset>
      {mayChange && (
        <div className={costs.buttons}>
          <Button
            look="primary"
            type="submit"
            keys="Ctrl+Enter"
            disabled={!isChanged || wrong !== null}
            busy={save.isPending}
          >
            Save policy
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

interface PolicyFieldsProps {
  draft: PolicyDraft;
  wrong: keyof PolicyDraft | null;
  errors: FormErrors;
  onChange: (patch: Partial<PolicyDraft>) => void;
}

/** Fields that are numbers, with what they do. */
const NUMBERS = [
  ['max_prompt_tokens', 'Longest stored prompt (tokens)', 'Longer prompts are cut. Empty: none is cut'],
  ['judge_quota_calls', 'Calls of LLM judges in a period', 'Further calls are not made. Empty: unlimited'],
  ['compare_threshold_percent', 'Reported difference (%)', 'Between two compared traces. Empty: 10'],
  ['regression_drop', 'Regression (score)', 'Drop of the mean score of an eval. Empty: 0.5'],
] as const satisfies readonly (readonly [keyof PolicyDraft, string, string])[];

function PolicyFields({ draft, wrong, errors, onChange }: PolicyFieldsProps): ReactElement {
  const choice = (name: keyof PolicyDraft) => ({
    value: draft[name],
    onChange: ({ target }: { target: { value: string } }) => {
      onChange({ [name]: target.value });
    },
  });
  return (
    <>
      <div className={costs.columns}>
        <Field label="Period of budgets" error={errors.fields['period'] ?? null}>
          {(control) => (
            <Select {...control} {...choice('period')}>
              <option value="month">Month</option>
              <option value="fiscal_year">Fiscal year</option>
            </Select>
          )}
        </Field>
        <Field
          label="First month of the fiscal year"
          hint="Counts where the period is the fiscal year"
          error={errors.fields['fiscal_year_start_month'] ?? null}
        >
          {(control) => (
            <Select {...control} {...choice('fiscal_year_start_month')}>
              {MONTHS.map((month, index) => (
                <option key={month} value={index + 1}>
                  {month}
                </option>
              ))}
            </Select>
          )}
        </Field>
        <Field
          label="What the gateway stores"
          hint="Of every call of the organization"
          error={errors.fields['capture'] ?? null}
        >
          {(control) => (
            <Select {...control} {...choice('capture')}>
              <option value="full">Prompts, responses and usage</option>
              <option value="usage">Usage alone</option>
            </Select>
          )}
        </Field>
        {NUMBERS.map(([name, label, hint]) => (
          <Field
            key={name}
            label={label}
            hint={hint}
            error={wrong === name ? NOT_A_NUMBER : (errors.fields[name] ?? null)}
          >
            {(control) => <Input {...control} inputMode="decimal" {...choice(name)} />}
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
