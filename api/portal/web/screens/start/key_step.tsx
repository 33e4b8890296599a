// The key of the snippets: made here by somebody who may make keys, pasted by others. The raw key is
// in the memory of this page only.
import { type ReactElement, useState } from 'react';
import { send } from '../../client/api.ts';
import { RequestError } from '../../client/error.ts';
import { randomId } from '../../client/random_id.ts';
import { useOrganization } from '../../client/session.ts';
import { Button } from '../../ui/button.tsx';
import { CopyButton } from '../../ui/copy_button.tsx';
import { Field, Input } from '../../ui/field.tsx';
import { KEY_SCOPES } from './snippets.ts';
import styles from './start.module.css';

interface KeyStepProps {
  value: string;
  onKey: (key: string) => void;
}

/** The step. */
export function KeyStep({ value, onKey }: KeyStepProps): ReactElement {
  const { can } = useOrganization();
  const [made, setMade] = useState(false);
  if (made) return <MadeKey value={value} />;
  return (
    <>
      {can('api_keys:write') && (
        <MakeKey
          onKey={(key) => {
            setMade(true);
            onKey(key);
          }}
        />
      )}
      <Field label={can('api_keys:write') ? 'Or paste a key that you have' : 'Paste a key that an admin gave you'}>
        {(control) => (
          <Input
            {...control}
            className={styles.keyField}
            placeholder="sk_svc_…"
            value={value}
            onChange={(event) => {
              onKey(event.target.value.trim());
            }}
          />
        )}
      </Field>
    </>
  );
}

function MakeKey({ onKey }: { onKey: (key: string) => void }): ReactElement {
  const { org_id } = useOrganization();
  // Made with the form, so that a second click makes no second key.
  const [idempotencyKey] = useState(randomId);
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<string | null>(null);
  const make = async (): Promise<void> => {
    setBusy(true);
    setError(null);
    try {
      const { raw_key } = await send(org_id, 'post', '/orgs/{org_id}/api-keys', {
        params: { path: { org_id } },
        body: { name: 'First steps', scopes: [...KEY_SCOPES] },
        idempotencyKey,
      });
      onKey(raw_key);
    } catch (thrown) {
      setError(thrown instanceof RequestError ? thrown.detail : String(thrown));
    } finally {
      setBusy(false);
    }
  };
  return (
    <div className={styles.line}>
      <Button look="primary" icon="key" busy={busy} onClick={() => void make()}>
        Create key
      </Button>
      <span className={styles.hint}>It may send events and call the gateway, and read nothing.</span>
      {error !== null && (
        <p role="alert" className={styles.error}>
          {error}
        </p>
      )}
    </div>
  );
}

function MadeKey({ value }: { value: string }): ReactElement {
  return (
    <div className={styles.line} role="status">
      <code className={styles.key}>{value}</code>
      <CopyButton text={value} label="Copy key" labelled />
      <p className={styles.hint}>
        The key is shown on this page only, and not again after you leave it. The snippets below contain it.
      </p>
    </div>
  );
}
