// The choice of an organization on a page of the operator.
import { useInfiniteQuery } from '@tanstack/react-query';
import { type ReactElement, useId } from 'react';
import { ErrorPanel } from '../../ui/error_panel.tsx';
import { Field, Input } from '../../ui/field.tsx';
import styles from './operator.module.css';
import { orgsQuery } from './orgs_api.ts';

interface OrgChoiceProps {
  /** Id of an organization. */
  value: string;
  error?: string | null;
  onChange: (org_id: string) => void;
}

/** The field: an id, with the organizations that are loaded as suggestions. */
export function OrgChoice({ value, error = null, onChange }: OrgChoiceProps): ReactElement {
  const listId = useId();
  const orgs = useInfiniteQuery(orgsQuery);
  const known = orgs.data?.pages.flatMap(({ data }) => data) ?? [];
  if (orgs.isError)
    return <ErrorPanel error={orgs.error} what="the organizations" onRetry={() => void orgs.refetch()} />;
  const name = known.find(({ org_id }) => org_id === value)?.name;
  return (
    <div className={styles.form}>
      <Field label="Organization" hint={name ?? 'Id of the organization'} error={error}>
        {(control) => (
          <>
            <Input
              {...control}
              key={value}
              list={listId}
              defaultValue={value}
              onChange={({ target }) => {
                if (known.some(({ org_id }) => org_id === target.value)) onChange(target.value);
              }}
              onBlur={({ target }) => {
                onChange(target.value.trim());
              }}
            />
            <datalist id={listId}>
              {known.map(({ org_id, name: title }) => (
                <option key={org_id} value={org_id}>
                  {title}
                </option>
              ))}
            </datalist>
          </>
        )}
      </Field>
    </div>
  );
}
