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

/** The key of the page, and the way to make it. */
export interface StartKey {
  /** Empty before a key is made or pasted. */
  value: string;
  isMade: boolean;
  busy: boolean;
  error: string | null;
  paste: (key: string) => void;
  /** Makes the key and returns it; null when that failed, or for a person who may make none. */
  make: (() => Promise<string | null>) | null;
}

/** Returns the key of the page. */
export function useStartKey(): StartKey {
  const { org_id, can } = useOrganization();
  const [value, setValue] = useState('');
  const [isMade, setMade] = useState(false);
  // Made with the form, so that a second click makes no second key.
  const [idempotencyKey] = useState(randomId);
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<string | null>(null);
  const make = async (): Promise<string | null> => {
    setBusy(true);
    setError(null);
    try {
      const { raw_key } = await send(org_id, 'post', '/orgs/{org_id}/api-keys', {
        params: { path: { org_id } },
        body: { name: 'First steps', scopes: [...KEY_SCOPES] },
        idempotencyKey,
      });
      setValue(raw_key);
      setMade(true);
      return raw_key;
    } catch (thrown) {
      setError(thrown instanceof RequestError ? thrown.detail : String(thrown));
      return null;
    } finally {
      setBusy(false);
    }
  };
  return { value, isMade, busy, error, paste: setValue, make: can('api_keys:write') ? make : null };
}

/** The step. */
export function KeyStep({ startKey }: { startKey: StartKey }): ReactElement {
  const { value, isMade, make, paste } = startKey;
  if (isMade) return <MadeKey value={value} />;
  return (
    <>
      {make !== null && <MakeKey startKey={startKey} />}
      <Field label={make === null ? 'Paste a key that an admin gave you' : 'Or paste a key that you have'}>
        {(control) => (
          <Input
            {...control}
            className={styles.keyField}
            placeholder="sk_svc_…"
            value={value}
            onChange={(event) => {
              paste(event.target.value.trim());
            }}
          />
        )}
      </Field>
    </>
  );
}

function MakeKey({ startKey: { busy, error, make } }: { startKey: StartKey }): ReactElement {
  return (
    <div className={styles.line}>
      <Button look="primary" icon="key" busy={busy} onClick={() => void make?.()}>
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
