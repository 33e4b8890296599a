// What an eval judges: a sample of the traces, those of a list, those with some ids, or a dataset.
import { useQuery } from '@tanstack/react-query';
import type { ReactElement } from 'react';
import { apiQuery } from '../../client/api.ts';
import { FRESH } from '../../client/query_client.ts';
import { useOrganization } from '../../client/session.ts';
import { count } from '../../text/format.ts';
import { Field, Input, Select } from '../../ui/field.tsx';
import inputs from '../../ui/field.module.css';
import styles from '../judges/judges.module.css';

export interface Subject {
  kind: 'sample' | 'query' | 'ids' | 'dataset';
  limit: string;
  query: string;
  ids: string;
  dataset_id: string;
  prompt_version: string;
  model: string;
}

export const SUBJECTS = [
  { kind: 'sample', label: 'A sample of the traces' },
  { kind: 'query', label: 'Traces of a list' },
  { kind: 'ids', label: 'Traces by id' },
  { kind: 'dataset', label: 'A dataset' },
] as const;

interface SubjectFieldsProps {
  subject: Subject;
  onChange: (patch: Partial<Subject>) => void;
}

/** The fields of the chosen kind. */
export function SubjectFields({ subject, onChange }: SubjectFieldsProps): ReactElement {
  const { kind } = subject;
  const text = (name: 'limit' | 'query' | 'model', label: string, hint?: string): ReactElement => (
    <Field label={label} {...(hint === undefined ? {} : { hint })}>
      {(control) => (
        <Input
          {...control}
          value={subject[name]}
          onChange={(event) => {
            onChange({ [name]: event.currentTarget.value });
          }}
        />
      )}
    </Field>
  );
  if (kind === 'sample')
    return text('limit', 'Traces of the last 7 days', 'Spread evenly over them; the same traces give the same sample');
  if (kind === 'query')
    return (
      <>
        {text(
          'query',
          'Query of the list of traces',
          'What stands after the question mark in its address, for example agent_id=planner&outcome=error&t=7d',
        )}
        {text('limit', 'At most so many traces, the newest')}
      </>
    );
  if (kind === 'ids')
    return (
      <Field label="Trace ids, one a line">
        {(control) => (
          <textarea
            {...control}
            rows={4}
            className={inputs.input}
            value={subject.ids}
            onChange={(event) => {
              onChange({ ids: event.currentTarget.value });
            }}
          />
        )}
      </Field>
    );
  return (
    <div className={styles.fields}>
      <Dataset subject={subject} onChange={onChange} />
      <PromptChoice subject={subject} onChange={onChange} />
      {text('model', 'Model', 'Answers the inputs; the model of the prompt if left empty')}
    </div>
  );
}

function Dataset({ subject, onChange }: SubjectFieldsProps): ReactElement {
  const { org_id } = useOrganization();
  const { data } = useQuery({
    ...apiQuery(org_id, '/v1/datasets', { query: { limit: 200 } }),
    staleTime: FRESH.registry,
  });
  return (
    <Field label="Dataset">
      {(control) => (
        <Select
          {...control}
          value={subject.dataset_id}
          onChange={(event) => {
            onChange({ dataset_id: event.currentTarget.value });
          }}
        >
          <option value="">Choose a dataset</option>
          {data?.data.map(({ dataset_id, name, version, item_count }) => (
            <option key={dataset_id} value={dataset_id}>
              {`${name}@${version} (${count(item_count)} items)`}
            </option>
          ))}
        </Select>
      )}
    </Field>
  );
}

function PromptChoice({ subject, onChange }: SubjectFieldsProps): ReactElement {
  const { org_id } = useOrganization();
  const { data } = useQuery({
    ...apiQuery(org_id, '/v1/prompts', { query: { limit: 200 } }),
    staleTime: FRESH.registry,
  });
  return (
    <Field label="Prompt">
      {(control) => (
        <Select
          {...control}
          value={subject.prompt_version}
          onChange={(event) => {
            onChange({ prompt_version: event.currentTarget.value });
          }}
        >
          <option value="">Inputs as they are</option>
          {data?.data.map(({ name, version }) => (
            <option key={`${name}@${version}`} value={`${name}@${version}`}>
              {`${name}@${version}`}
            </option>
          ))}
        </Select>
      )}
    </Field>
  );
}
