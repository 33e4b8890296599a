// The failure of a panel, in its place: what failed, the detail of the API, the request id and Retry.
// A 429 counts down and retries by itself.
import { type ReactElement, useEffect, useEffectEvent, useState } from 'react';
import { RequestError } from '../client/error.ts';
import { Button } from './button.tsx';
import { CopyButton } from './copy_button.tsx';
import { cx } from './cx.ts';
import { errorTitle } from '../text/errors.ts';
import { Icon } from './icons.tsx';
import styles from './state.module.css';

interface ErrorPanelProps {
  error: unknown;
  /** Name of what failed, for example "the traces". */
  what: string;
  onRetry?: () => void;
}

/** The panel for an error. */
export function ErrorPanel({ error, what, onRetry }: ErrorPanelProps): ReactElement {
  const known = error instanceof RequestError ? error : null;
  const left = useCountdown(known?.status === 429 ? (known.retry_after ?? 1) : null, onRetry);
  return (
    <div className={cx(styles.state, styles.error)} role="alert">
      <p className={styles.title}>
        <Icon name="warning" />
        {errorTitle(known, what)}
      </p>
      <p className={styles.text}>{known?.detail ?? (error instanceof Error ? error.message : String(error))}</p>
      {known?.request_id !== null && known !== null && (
        <p className={styles.small}>
          Request <code>{known.request_id}</code>
          <CopyButton text={known.request_id} label="Copy request id" />
        </p>
      )}
      {onRetry !== undefined && (
        <div className={styles.actions}>
          <Button icon="refresh" onClick={onRetry}>
            {left === null ? 'Retry' : `Retry in ${left} s`}
          </Button>
        </div>
      )}
    </div>
  );
}

/** Counts seconds down to 0 and then calls; null: counts nothing. */
function useCountdown(seconds: number | null, then: (() => void) | undefined): number | null {
  const [left, setLeft] = useState(seconds);
  const finish = useEffectEvent(() => then?.());
  useEffect(() => {
    if (left === null) return undefined;
    if (left <= 0) {
      finish();
      return undefined;
    }
    const timer = setTimeout(() => {
      setLeft(left - 1);
    }, 1000);
    return () => {
      clearTimeout(timer);
    };
  }, [left]);
  return left;
}
