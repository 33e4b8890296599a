// The form that starts a session with a token: one of the identity provider, or the operator's.
import { type ReactElement, type ReactNode, useId, useState } from 'react';
import { send } from '../../client/api.ts';
import { RequestError } from '../../client/error.ts';
import { Button } from '../../ui/button.tsx';
import { Field, Input } from '../../ui/field.tsx';
import styles from './login.module.css';

/** What a token is for. */
export interface TokenLogin {
  title: string;
  label: string;
  hint: string;
  /** Returns why a text cannot be a token; null where it can. */
  refusalOf: (text: string) => string | null;
  /** Starts the session. @throws RequestError */
  begin: (token: string) => Promise<unknown>;
}

const bearer = (token: string): Record<string, string> => ({ Authorization: `Bearer ${token}` });

const PERSON: TokenLogin = {
  title: 'Log in with a token',
  label: 'Token',
  hint: 'A token of your identity provider. API keys are for programs and do not log a browser in.',
  refusalOf,
  begin: (token) => send(null, 'post', '/v1/session', { headers: bearer(token), throw401: true }),
};

export const OPERATOR: TokenLogin = {
  title: 'Log in as the operator',
  label: 'Operator token',
  hint: 'SERVICE_ADMIN_TOKEN of the service. On a local service, data/secrets.json holds it. The session lasts an hour.',
  refusalOf,
  begin: (token) => send(null, 'post', '/admin/session', { headers: bearer(token), throw401: true }),
};

interface TokenFormProps {
  /** Called after the login. */
  onDone: () => void;
  login?: TokenLogin;
  children?: ReactNode;
}

/** The form. */
export function TokenForm({ onDone, login = PERSON, children }: TokenFormProps): ReactElement {
  const id = useId();
  const [token, setToken] = useState('');
  const [error, setError] = useState<string | null>(null);
  const [busy, setBusy] = useState(false);
  const submit = async (): Promise<void> => {
    const text = token.trim();
    const refused = login.refusalOf(text);
    setError(refused);
    if (refused !== null) return;
    setBusy(true);
    try {
      await login.begin(text);
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
      <h2 id={id}>{login.title}</h2>
      <Field label={login.label} error={error} hint={login.hint}>
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
  if (text.startsWith('sk_svc_')) return 'This is an API key, which does not log a browser in. Paste a token.';
  return /^[\x21-\x7e]+$/.test(text) ? null : 'A token has no spaces and only ASCII characters.';
}
