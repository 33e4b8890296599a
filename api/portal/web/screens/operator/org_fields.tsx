// The fields of an organization in the operator's form.
import type { ReactElement } from 'react';
import { Field, Input, Select } from '../../ui/field.tsx';
import type { OrgDraft } from './org_draft.ts';
import { PLANS } from './orgs_api.ts';

interface OrgFieldsProps {
  draft: OrgDraft;
  /** True: the id can be chosen. */
  isNew: boolean;
  errorOf: (name: keyof OrgDraft) => string | null;
  onChange: (patch: Partial<OrgDraft>) => void;
}

/** The fields. */
export function OrgFields({ draft, isNew, errorOf, onChange }: OrgFieldsProps): ReactElement {
  const one = (name: keyof OrgDraft, label: string, hint?: string): ReactElement => (
    <Field label={label} error={errorOf(name)} {...(hint === undefined ? {} : { hint })}>
      {(control) => (
        <Input
          {...control}
          value={draft[name]}
          onChange={({ target }) => {
            onChange({ [name]: target.value });
          }}
        />
      )}
    </Field>
  );
  return (
    <>
      {one('name', 'Name')}
      {isNew && one('org_id', 'Id', 'Empty: the service chooses one. Letters, digits, _ . -')}
      <Field label="Plan" error={errorOf('plan_name')}>
        {(control) => (
          <Select
            {...control}
            value={draft.plan_name}
            onChange={({ target }) => {
              onChange({ plan_name: PLANS.find((plan) => plan === target.value) ?? 'pro' });
            }}
          >
            {PLANS.map((plan) => (
              <option key={plan} value={plan}>
                {plan}
              </option>
            ))}
          </Select>
        )}
      </Field>
      {one('owner_email', 'Mail address of the owner')}
      {one(
        'owner_id',
        'User id of the owner',
        isNew
          ? 'sub of their tokens at the identity provider'
          : 'sub of their tokens. A new owner replaces this one, who becomes an admin.',
      )}
      {one('overage', 'Overage budget (USD)', 'Empty: none')}
      {draft.plan_name === 'enterprise' && (
        <>
          {one('ingest', 'Ingest requests a minute', 'Own limits need all three; empty: those of the plan')}
          {one('api', 'API requests a minute')}
          {one('burst', 'Burst')}
        </>
      )}
    </>
  );
}
