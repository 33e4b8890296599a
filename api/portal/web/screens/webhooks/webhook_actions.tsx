// The actions on an endpoint: a test event with its answer, editing, a new secret, disabling, deletion.
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { type ReactElement, useState } from 'react';
import { navigate } from 'wouter/use-browser-location';
import { send } from '../../client/api.ts';
import { deleteThing } from '../../client/deleted_thing.ts';
import { randomId } from '../../client/random_id.ts';
import { useOrganization } from '../../client/session.ts';
import { useKeys } from '../../shell/keys.ts';
import { fullTime } from '../../text/format_time.ts';
import { usePreferences } from '../../shell/preferences.ts';
import { oneLine } from '../../trace/text/one_line.ts';
import { Button } from '../../ui/button.tsx';
import { deferred } from '../../ui/deferred.tsx';
import { Dialog } from '../../ui/dialog.tsx';
import { ErrorPanel } from '../../ui/error_panel.tsx';
import { Menu } from '../../ui/menu.tsx';
import { SecretDialog } from '../../ui/secret_dialog.tsx';
import { toast } from '../../ui/toast.tsx';
import { auditLink } from '../audit/audit_link.ts';
import lists from '../sessions/sessions.module.css';
import { TestResult, useTest } from './test_event.tsx';
import { rereadWebhooks, type Webhook } from './webhook_data.ts';

const WebhookDialog = deferred(() => import('./webhook_dialog.tsx'));

type Open = 'edit' | 'rotate' | 'disable' | 'delete' | { secret: string; until: string } | null;

/** The buttons, for a person who may change endpoints. */
export function WebhookActions({ webhook }: { webhook: Webhook }): ReactElement | null {
  const { can } = useOrganization();
  return can('integrations:write') ? <Actions webhook={webhook} /> : null;
}

function Actions({ webhook }: { webhook: Webhook }): ReactElement {
  const [open, setOpen] = useState<Open>(null);
  const test = useTest(webhook);
  const enable = useChange(webhook, { enabled: true });
  const close = (): void => {
    setOpen(null);
  };
  const edit = (): void => {
    setOpen('edit');
  };
  useKeys('Endpoint', [
    { keys: 'e', label: 'Edit the endpoint', run: edit },
    ...(webhook.enabled ? [{ keys: 't', label: 'Send a test event', run: test.run }] : []),
  ]);
  return (
    <>
      <div className={lists.actions}>
        {webhook.enabled ? (
          <Button look="primary" keys="t" busy={test.busy} onClick={test.run}>
            Send test event
          </Button>
        ) : (
          <Button
            look="primary"
            busy={enable.isPending}
            onClick={() => {
              enable.mutate();
            }}
          >
            Enable endpoint
          </Button>
        )}
        <Button keys="e" onClick={edit}>
          Edit endpoint
        </Button>
        <MoreMenu enabled={webhook.enabled} onOpen={setOpen} />
      </div>
      {enable.error !== null && <ErrorPanel error={enable.error} what="the change" />}
      <TestResult test={test} />
      {open !== null && <OpenDialog open={open} webhook={webhook} onOpen={setOpen} onClose={close} />}
    </>
  );
}

function MoreMenu({ enabled, onOpen }: { enabled: boolean; onOpen: (open: Open) => void }): ReactElement {
  return (
    <Menu
      label="More actions"
      icon="more"
      items={[
        {
          label: 'Rotate secret …',
          onSelect: () => {
            onOpen('rotate');
          },
        },
        ...(enabled
          ? [
              {
                label: 'Disable endpoint …',
                onSelect: () => {
                  onOpen('disable');
                },
              },
            ]
          : []),
        {
          label: 'Delete endpoint …',
          danger: true,
          onSelect: () => {
            onOpen('delete');
          },
        },
      ]}
    />
  );
}

interface OpenDialogProps {
  open: Exclude<Open, null>;
  webhook: Webhook;
  onOpen: (open: Open) => void;
  onClose: () => void;
}

function OpenDialog({ open, webhook, onOpen, onClose }: OpenDialogProps): ReactElement {
  const { zone } = usePreferences();
  if (open === 'edit') return <WebhookDialog webhook={webhook} onClose={onClose} />;
  if (open === 'rotate')
    return (
      <RotateDialog
        webhook={webhook}
        onClose={onClose}
        onRotated={(secret, until) => {
          onOpen({ secret, until });
        }}
      />
    );
  if (open === 'disable') return <DisableDialog webhook={webhook} onClose={onClose} />;
  if (open === 'delete') return <DeleteDialog webhook={webhook} onClose={onClose} />;
  return (
    <SecretDialog title="New signing secret of the endpoint" secret={open.secret} onClose={onClose}>
      <p>
        It is shown now and not again. Until {fullTime(open.until, zone)} deliveries are also signed with the previous
        secret, so that the receiver can switch without rejecting any.
      </p>
    </SecretDialog>
  );
}

function useChange({ webhook_id }: Webhook, body: { enabled: boolean }, onDone?: () => void) {
  const { org_id } = useOrganization();
  const cache = useQueryClient();
  return useMutation({
    mutationFn: () =>
      send(org_id, 'patch', '/orgs/{org_id}/webhooks/{webhook_id}', {
        params: { path: { org_id, webhook_id } },
        body,
      }),
    onSuccess: () => {
      toast({
        text: body.enabled ? 'The endpoint is enabled.' : 'The endpoint is disabled.',
        link: auditLink(org_id, 'webhook.update'),
      });
      onDone?.();
      void rereadWebhooks(cache, org_id);
    },
  });
}

interface ConfirmProps {
  title: string;
  action: string;
  danger?: boolean;
  busy: boolean;
  error: unknown;
  what: string;
  children: string;
  onConfirm: () => void;
  onClose: () => void;
}

function Confirm({ title, action, danger = false, busy, error, what, children, onConfirm, onClose }: ConfirmProps) {
  const submit = (): void => {
    if (!busy) onConfirm();
  };
  return (
    <Dialog
      title={title}
      onClose={onClose}
      onSubmit={submit}
      footer={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button look={danger ? 'danger' : 'primary'} type="submit" busy={busy}>
            {action}
          </Button>
        </>
      }
    >
      {error !== null && <ErrorPanel error={error} what={what} />}
      <p>{children}</p>
    </Dialog>
  );
}

function DisableDialog({ webhook, onClose }: { webhook: Webhook; onClose: () => void }): ReactElement {
  const { mutate, isPending, error } = useChange(webhook, { enabled: false }, onClose);
  return (
    <Confirm
      title={`Disable ${oneLine(webhook.url)}`}
      action="Disable endpoint"
      danger
      busy={isPending}
      error={error}
      what="the change"
      onConfirm={mutate}
      onClose={onClose}
    >
      Deliveries that wait for this endpoint are dropped, and events that happen while it is disabled are not delivered
      later.
    </Confirm>
  );
}

interface RotateDialogProps {
  webhook: Webhook;
  onClose: () => void;
  onRotated: (secret: string, until: string) => void;
}

function RotateDialog({ webhook, onClose, onRotated }: RotateDialogProps): ReactElement {
  const { org_id } = useOrganization();
  const [idempotencyKey] = useState(randomId);
  const { webhook_id } = webhook;
  const { mutate, isPending, error } = useMutation({
    mutationFn: () =>
      send(org_id, 'post', '/orgs/{org_id}/webhooks/{webhook_id}/secrets', {
        params: { path: { org_id, webhook_id } },
        body: {},
        idempotencyKey,
      }),
    onSuccess: ({ data }) => {
      onRotated(data.secret, data.previous_expires_at);
    },
  });
  return (
    <Confirm
      title="Rotate the signing secret"
      action="Rotate secret"
      busy={isPending}
      error={error}
      what="the new secret"
      onConfirm={mutate}
      onClose={onClose}
    >
      The endpoint gets a new secret. For 24 hours deliveries are signed with the new and the previous secret.
    </Confirm>
  );
}

function DeleteDialog({ webhook, onClose }: { webhook: Webhook; onClose: () => void }): ReactElement {
  const { org_id } = useOrganization();
  const cache = useQueryClient();
  const { webhook_id } = webhook;
  const { mutate, isPending, error } = useMutation({
    mutationFn: () =>
      deleteThing(cache, webhook_id, () =>
        send(org_id, 'delete', '/orgs/{org_id}/webhooks/{webhook_id}', { params: { path: { org_id, webhook_id } } }),
      ),
    onSuccess: () => {
      toast({ text: 'Deleted the endpoint.', link: auditLink(org_id, 'webhook.delete') });
      navigate(`/o/${encodeURIComponent(org_id)}/webhooks`);
      void rereadWebhooks(cache, org_id, webhook_id);
    },
  });
  return (
    <Confirm
      title={`Delete ${oneLine(webhook.url)}`}
      action="Delete endpoint"
      danger
      busy={isPending}
      error={error}
      what="the deletion"
      onConfirm={mutate}
      onClose={onClose}
    >
      The endpoint is deleted with its waiting deliveries and its dead letters.
    </Confirm>
  );
}
