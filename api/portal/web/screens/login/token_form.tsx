// The form that starts a session with a token of the identity provider.
import { type ReactElement, type ReactNode, useId, useState } from 'react';
import { send } from '../../client/api.ts';
import { RequestError } from '../../client/error.ts';
import { Button } from '../../ui/button.tsx';
import { Field, Input } from '../../ui/field.tsx';
import styles from './login.module.css';

/** The form; `onDone` is called after the login. */
export function TokenForm({ onDone, children }: { onDone: () => void; children?: ReactNode }): ReactElement {
  const id = useId();
  const [token, setToken] = useState('');
  const [error, setError] = useState<string | null>(null);
  const [busy, setBusy] = useState(false);
  const submit = async (): Promise<void> => {
    const text = token.trim();
    const refused = refusalOf(text);
    setError(refused);
    if (refused !== null) return;
    setBusy(true);
    try {
      await send(null, 'post', '/v1/session', { headers: { Authorization: `Bearer ${text}` }, throw401: true });
      setToken('');
      onDone();
    } catch (thrown) {
      setError(thrown instanceof RequestError ? thrown.detail : String(thrown));
    } finally {
      setBusy(false);
    }
  };
  return (
    <div
      role="group"
      aria-labelledby={id}
      className={styles.form}
      onKeyDown={(event) => {
        if (event.key !== 'Enter' || !(event.target instanceof HTMLInputElement)) return;
        event.preventDefault();
        void submit();
      }}
    >
      {children}
      <h2 id={id}>Log in with a token</h2>
      <Field
        label="Token"
        error={error}
        hint="A token of your identity provider. API keys are for programs and do not log a browser in."
      >
        {(control) => (
          <Input
            {...control}
            type="password"
            value={token}
            onChange={(event) => {
              setToken(event.target.value);
            }}
          />
        )}
      </Field>
      <div>
        <Button look="primary" busy={busy} onClick={() => void submit()}>
          Log in
        </Button>
      </div>
    </div>
  );
}

/** Returns why a text cannot be a token; null where it can. */
function refusalOf(text: string): string | null {
  if (text === '') return 'Paste a token.';
  if (text.startsWith('sk_svc_')) return 'This is an API key. Paste a token of your identity provider.';
  return /^[\x21-\x7e]+$/.test(text) ? null : 'A token has no spaces and only ASCII characters.';
}
