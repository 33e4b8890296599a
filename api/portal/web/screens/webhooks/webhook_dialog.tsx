// The dialog that creates an endpoint, or changes the events and the description of one.
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { type ReactElement, useState } from 'react';
import { send } from '../../client/api.ts';
import { randomId } from '../../client/random_id.ts';
import { useOrganization } from '../../client/session.ts';
import { Button } from '../../ui/button.tsx';
import { Dialog } from '../../ui/dialog.tsx';
import { Field, Input } from '../../ui/field.tsx';
import { toast } from '../../ui/toast.tsx';
import { auditLink } from '../audit/audit_link.ts';
import { type FormErrors, formErrors } from '../costs/field_error.ts';
import { EventFields } from './event_fields.tsx';
import { rereadWebhooks, type Webhook } from './webhook_data.ts';
import styles from './webhooks.module.css';

const URL_CHARS_MAX = 2048;
const DESCRIPTION_CHARS_MAX = 500;
const FIELDS = ['url', 'description', 'events'];

interface WebhookDialogProps {
  /** Endpoint to change; null for a new one. */
  webhook: Webhook | null;
  onClose: () => void;
  /** Called with a new endpoint and its signing secret. */
  onCreated?: (webhook_id: string, secret: string) => void;
}

interface Draft {
  url: string;
  description: string;
  events: string[];
}

/** The open dialog. */
export default function WebhookDialog({ webhook, onClose, onCreated }: WebhookDialogProps): ReactElement {
  const [draft, setDraft] = useState<Draft>({
    url: webhook?.url ?? '',
    description: webhook?.description ?? '',
    events: webhook?.events ?? [],
  });
  const save = useSave(webhook, { onClose, onCreated });
  const isReady = draft.url.trim() !== '' && draft.events.length > 0;
  const submit = (): void => {
    if (isReady && !save.isPending) save.mutate(draft);
  };
  const change = (patch: Partial<Draft>): void => {
    setDraft((now) => ({ ...now, ...patch }));
  };
  return (
    <Dialog
      title={webhook === null ? 'Create endpoint' : 'Edit endpoint'}
      form="wide"
      onClose={onClose}
      onSubmit={submit}
      footer={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button look="primary" type="submit" keys="Ctrl+Enter" disabled={!isReady} busy={save.isPending}>
            {webhook === null ? 'Create endpoint' : 'Save endpoint'}
          </Button>
        </>
      }
    >
      <Fields draft={draft} isNew={webhook === null} errors={formErrors(save.error, FIELDS)} onChange={change} />
    </Dialog>
  );
}

interface FieldsProps {
  draft: Draft;
  isNew: boolean;
  errors: FormErrors;
  onChange: (patch: Partial<Draft>) => void;
}

function Fields({ draft, isNew, errors: { fields, form }, onChange }: FieldsProps): ReactElement {
  return (
    <div className={styles.form}>
      {form !== null && (
        <p role="alert" className={styles.error}>
          {form}
        </p>
      )}
      <Field
        label="Address"
        hint={
          isNew
            ? 'https; in development also http to localhost and 127.0.0.1'
            : 'The address of an endpoint does not change. Create another endpoint for another address.'
        }
        error={fields['url'] ?? null}
      >
        {(control) => (
          <Input
            {...control}
            type="url"
            maxLength={URL_CHARS_MAX}
            placeholder="https://"
            value={draft.url}
            readOnly={!isNew}
            onChange={({ target }) => {
              onChange({ url: target.value });
            }}
          />
        )}
      </Field>
      <Field label="Description (optional)" error={fields['description'] ?? null}>
        {(control) => (
          <Input
            {...control}
            maxLength={DESCRIPTION_CHARS_MAX}
            value={draft.description}
            onChange={({ target }) => {
              onChange({ description: target.value });
            }}
          />
        )}
      </Field>
      <EventFields
        chosen={draft.events}
        error={fields['events'] ?? null}
        onChange={(events) => {
          onChange({ events });
        }}
      />
    </div>
  );
}

function useSave(
  webhook: Webhook | null,
  { onClose, onCreated }: { onClose: () => void; onCreated: WebhookDialogProps['onCreated'] },
) {
  const { org_id, can } = useOrganization();
  const cache = useQueryClient();
  // Made with the form, so that a second click makes no second endpoint.
  const [idempotencyKey] = useState(randomId);
  return useMutation({
    mutationFn: async ({ url, description, events }: Draft) => {
      if (webhook !== null) {
        const { webhook_id } = webhook;
        await send(org_id, 'patch', '/orgs/{org_id}/webhooks/{webhook_id}', {
          params: { path: { org_id, webhook_id } },
          body: { description, events: events as never },
        });
        return null;
      }
      const { data } = await send(org_id, 'post', '/orgs/{org_id}/webhooks', {
        params: { path: { org_id } },
        body: { url: url.trim(), description, events: events as never },
        idempotencyKey,
      });
      return data;
    },
    onSuccess: (created) => {
      void rereadWebhooks(cache, org_id);
      if (created !== null) {
        onCreated?.(created.webhook_id, created.secret);
        return;
      }
      toast({
        text: 'Saved the endpoint.',
        ...(can('audit:view') ? { link: auditLink(org_id, 'webhook.update') } : {}),
      });
      onClose();
    },
  });
}
