// A register token, with the command that registers an agent by it. The token is shown once.
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { type ReactElement, useState } from 'react';
import { send } from '../../client/api.ts';
import { randomId } from '../../client/random_id.ts';
import { useOrganization } from '../../client/session.ts';
import { usePreferences } from '../../shell/preferences.ts';
import { fullTime } from '../../text/format_time.ts';
import { Button } from '../../ui/button.tsx';
import { CopyButton } from '../../ui/copy_button.tsx';
import { Dialog } from '../../ui/dialog.tsx';
import { ErrorPanel } from '../../ui/error_panel.tsx';
import { SecretDialog } from '../../ui/secret_dialog.tsx';
import snippets from '../start/start.module.css';
import { registerCommand } from './register_command.ts';
import styles from './agents.module.css';

interface TokenDialogProps {
  /** Agent that the command registers; null for one that is still to be named. */
  agent_id: string | null;
  onClose: () => void;
}

/** The open dialog. */
export function TokenDialog({ agent_id, onClose }: TokenDialogProps): ReactElement {
  const { org_id } = useOrganization();
  const { zone } = usePreferences();
  const cache = useQueryClient();
  const [idempotencyKey] = useState(randomId);
  const { mutate, data, error, isPending } = useMutation({
    mutationFn: () =>
      send(org_id, 'post', '/orgs/{org_id}/agents/register-tokens', { params: { path: { org_id } }, idempotencyKey }),
  });
  const submit = (): void => {
    if (!isPending) mutate();
  };
  if (data === undefined)
    return (
      <Dialog
        title="Create register token"
        onClose={onClose}
        onSubmit={submit}
        footer={
          <>
            <Button onClick={onClose}>Cancel</Button>
            <Button look="primary" type="submit" busy={isPending}>
              Create token
            </Button>
          </>
        }
      >
        <div className={styles.form}>
          {error !== null && <ErrorPanel error={error} what="the register token" />}
          <p>
            One agent registers with the token for the first time, within 24 hours. Later it needs an API key alone.
          </p>
        </div>
      </Dialog>
    );
  const { register_token, expires_at } = data.data;
  const command = registerCommand({ origin: location.origin, org_id, agent_id, register_token });
  return (
    <SecretDialog
      title="Register token"
      noun="token"
      secret={register_token}
      onClose={() => {
        onClose();
        void cache.invalidateQueries({ queryKey: [org_id, '/orgs/{org_id}/agents'] });
        void cache.invalidateQueries({ queryKey: [org_id, '/orgs/{org_id}/unregistered-agents'] });
      }}
    >
      <p>The token is shown now and not again. It works once, until {fullTime(expires_at, zone)}.</p>
      <pre className={snippets.code} tabIndex={0} aria-label="Command that registers an agent">
        {command}
      </pre>
      <CopyButton text={command} label="Copy command" labelled />
    </SecretDialog>
  );
}
