// A secret that is shown once. The dialog stays until the secret was copied or the person says that it
// is stored.
import { type ReactElement, type ReactNode, useState } from 'react';
import { Button } from './button.tsx';
import { CopyButton } from './copy_button.tsx';
import { Dialog } from './dialog.tsx';
import styles from './dialog.module.css';

interface SecretDialogProps {
  title: string;
  /** Kind of the secret in the words of its buttons: "secret", "key". */
  noun?: string;
  secret: string;
  /** Says what the secret is for. */
  children: ReactNode;
  onClose: () => void;
}

/** The dialog. */
export function SecretDialog({ title, noun = 'secret', secret, children, onClose }: SecretDialogProps): ReactElement {
  const [isStored, setStored] = useState(false);
  return (
    <Dialog
      title={title}
      footer={
        <Button look="primary" disabled={!isStored} onClick={onClose}>
          Close
        </Button>
      }
    >
      <div className={styles.secret}>
        {children}
        <div className={styles.secretLine}>
          <code>{secret}</code>
          <CopyButton
            text={secret}
            label={`Copy ${noun}`}
            labelled
            onCopied={() => {
              setStored(true);
            }}
          />
        </div>
        <label className={styles.stored}>
          <input
            type="checkbox"
            checked={isStored}
            onChange={({ target }) => {
              setStored(target.checked);
            }}
          />
          I have stored the {noun}
        </label>
      </div>
    </Dialog>
  );
}
