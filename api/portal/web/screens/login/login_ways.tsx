// The ways to log in: at the identity provider, by the link that a local service prints, or with a token.
import type { ReactElement } from 'react';
import buttons from '../../ui/button.module.css';
import { cx } from '../../ui/cx.ts';
import styles from './login.module.css';
import { providerLogin, useLoginWays } from './provider_login.ts';
import { TokenForm } from './token_form.tsx';

interface LoginWaysProps {
  /** Path of this service that the identity provider leads back to. */
  to: string;
  /** Called after a login with a token. */
  onDone: () => void;
}

/** The ways. */
export function LoginWays({ to, onDone }: LoginWaysProps): ReactElement {
  const ways = useLoginWays();
  return (
    <>
      {ways.includes('oidc') && (
        // A link and no route of the portal: the service redirects the browser to the provider.
        <a className={cx(buttons.button, buttons.primary)} href={providerLogin(to)}>
          Log in at your identity provider
        </a>
      )}
      {ways.includes('ticket') && (
        <div className={styles.text}>
          <p>
            On the machine where the service runs, <code>npm start</code> prints a login link, and{' '}
            <code>npm run login</code> prints another one. A link works once, within ten minutes.
          </p>
        </div>
      )}
      <TokenForm onDone={onDone} />
    </>
  );
}
