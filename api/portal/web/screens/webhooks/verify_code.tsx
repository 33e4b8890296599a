// Code that verifies the signature of a delivery, in the languages that receivers are written in.
import { type ReactElement, useState } from 'react';
import { CopyButton } from '../../ui/copy_button.tsx';
import { Tabs } from '../../ui/tabs.tsx';
import snippets from '../start/start.module.css';
import { VERIFY_CODE } from './verify_snippets.ts';
import styles from './webhooks.module.css';

/** The tab. */
export function VerifyCode(): ReactElement {
  const [selected, setSelected] = useState<string>(VERIFY_CODE[0].id);
  const shown = VERIFY_CODE.find(({ id }) => id === selected) ?? VERIFY_CODE[0];
  return (
    <div className={styles.form}>
      <p className={styles.quiet}>
        Each delivery carries X-Service-Signature: the time, and one signature for each secret that is live. Verify it
        over the body as it was received, before parsing. X-Service-Event-Id stays the same over all attempts: ignore an
        id that was seen.
      </p>
      <Tabs
        label="Language"
        tabs={VERIFY_CODE.map(({ id, label }) => ({ id, label }))}
        selected={shown.id}
        onSelect={setSelected}
      >
        <pre className={snippets.code} tabIndex={0} aria-label={`Verification in ${shown.label}`}>
          {shown.text}
        </pre>
        <CopyButton text={shown.text} label="Copy code" labelled />
      </Tabs>
    </div>
  );
}
