// The erasure of everything that names a person: the request, confirmed by typing the value again, and
// the progress of the jobs.
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { type ReactElement, useState } from 'react';
import { send } from '../../client/api.ts';
import { randomId } from '../../client/random_id.ts';
import { useOrganization } from '../../client/session.ts';
import { oneLine } from '../../trace/text/one_line.ts';
import { Button } from '../../ui/button.tsx';
import { Field, Input } from '../../ui/field.tsx';
import { toast } from '../../ui/toast.tsx';
import costs from '../costs/costs.module.css';
import { JOBS_PATH, JobsList } from './jobs_list.tsx';
import { ConfirmDialog, Section } from './parts.tsx';

const ATTRIBUTES = ['user_id', 'session_id', 'agent_id', 'trace_id'] as const;
const ATTRIBUTE_CHARS_MAX = 128;
const VALUE_CHARS_MAX = 1024;

/** The section. */
export function EraseSection(): ReactElement {
  const { can } = useOrganization();
  const [isOpen, setOpen] = useState(false);
  return (
    <Section
      title="Erasure"
      change={{ permission: 'gdpr:execute', actions: ['gdpr.erase'] }}
      actions={
        can('gdpr:execute') && (
          <Button
            icon="trash"
            onClick={() => {
              setOpen(true);
            }}
          >
            Erase a person
          </Button>
        )
      }
    >
      <p className={costs.note}>
        Erases every trace that has a value in an attribute: spans, prompts, responses and scores, also from cold
        storage and the ingest log. Costs and usage stay, as they name nobody. A job checks at its end that nothing
        remains.
      </p>
      <JobsList kind="erase" label="Erasures" none="Nothing was erased in the last 90 days." />
      {isOpen && (
        <EraseDialog
          onClose={() => {
            setOpen(false);
          }}
        />
      )}
    </Section>
  );
}

function useErase(onDone: () => void) {
  const { org_id } = useOrganization();
  const queries = useQueryClient();
  const [key, setKey] = useState({ of: '', id: '' });
  return useMutation({
    mutationFn: (body: { attribute: string; value: string }) => {
      const of = JSON.stringify(body);
      const idempotencyKey = key.of === of ? key.id : randomId();
      setKey({ of, id: idempotencyKey });
      return send(org_id, 'post', '/orgs/{org_id}/gdpr/erase', { params: { path: { org_id } }, body, idempotencyKey });
    },
    onSuccess: async ({ data: { job_id } }) => {
      onDone();
      toast({ text: `Erasure ${job_id} is queued.` });
      await queries.invalidateQueries({ queryKey: [org_id, JOBS_PATH] });
    },
  });
}

function EraseDialog({ onClose }: { onClose: () => void }): ReactElement {
  const [attribute, setAttribute] = useState<string>(ATTRIBUTES[0]);
  const [value, setValue] = useState('');
  const [again, setAgain] = useState('');
  const erase = useErase(onClose);
  const text = (held: string, set: (next: string) => void) => ({
    value: held,
    onChange: ({ target }: { target: { value: string } }) => {
      set(target.value);
    },
  });
  return (
    <ConfirmDialog
      title="Erase the data of a person"
      action={value === '' ? 'Erase traces' : `Erase traces of ${oneLine(value.slice(0, 40))}`}
      danger
      disabled={attribute.trim() === '' || value.trim() === '' || again !== value}
      busy={erase.isPending}
      error={erase.error}
      onConfirm={() => {
        erase.mutate({ attribute: attribute.trim(), value });
      }}
      onClose={onClose}
    >
      <p>Erased traces cannot be restored. Events that arrive afterwards are new data.</p>
      <Field label="Attribute" hint={`${ATTRIBUTES.join(', ')}, or the name of an attribute such as customer_id`}>
        {(control) => (
          <Input
            {...control}
            list="erase-attributes"
            required
            maxLength={ATTRIBUTE_CHARS_MAX}
            {...text(attribute, setAttribute)}
          />
        )}
      </Field>
      <datalist id="erase-attributes">
        {ATTRIBUTES.map((one) => (
          <option key={one} value={one} />
        ))}
      </datalist>
      <Field label="Value" hint="The whole value as it was sent, also where a hash is stored">
        {(control) => (
          <Input
            {...control}
            ref={(field) => field?.setAttribute('autofocus', '')}
            required
            maxLength={VALUE_CHARS_MAX}
            {...text(value, setValue)}
          />
        )}
      </Field>
      <Field label="Value again" error={again !== '' && again !== value ? 'Must be the same as the value above' : null}>
        {(control) => <Input {...control} required maxLength={VALUE_CHARS_MAX} {...text(again, setAgain)} />}
      </Field>
    </ConfirmDialog>
  );
}
