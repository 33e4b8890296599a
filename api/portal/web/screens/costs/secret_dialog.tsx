// The signing secret of the alert webhook. It is shown once, so the dialog stays until the secret was
// copied or the person says that it is stored.
import { type ReactElement, useState } from 'react';
import { Button } from '../../ui/button.tsx';
import { CopyButton } from '../../ui/copy_button.tsx';
import { Dialog } from '../../ui/dialog.tsx';
import styles from './costs.module.css';

/** The dialog. */
export function SecretDialog({ secret, onClose }: { secret: string; onClose: () => void }): ReactElement {
  const [isStored, setStored] = useState(false);
  return (
    <Dialog
      title="Signing secret of the alert webhook"
      footer={
        <Button look="primary" disabled={!isStored} onClick={onClose}>
          Close
        </Button>
      }
    >
      <div className={styles.form}>
        <p>The receiver verifies each alert with this secret. It is shown now and not again.</p>
        <div className={styles.line}>
          <code className={styles.grow}>{secret}</code>
          <CopyButton
            text={secret}
            label="Copy secret"
            labelled
            onCopied={() => {
              setStored(true);
            }}
          />
        </div>
        <label className={styles.check}>
          <input
            type="checkbox"
            checked={isStored}
            onChange={({ target }) => {
              setStored(target.checked);
            }}
          />
          I have stored the secret
        </label>
      </div>
    </Dialog>
  );
}
