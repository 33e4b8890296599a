// A modal dialog on the platform's <dialog>: top layer, focus kept inside, Escape closes, focus
// returns. Rendering it opens it; leave it out to close it.
import { type ReactElement, type ReactNode, useEffect, useId, useRef } from 'react';
import { Button } from './button.tsx';
import { cx } from './cx.ts';
import styles from './dialog.module.css';

interface DialogProps {
  title: string;
  children: ReactNode;
  /** Buttons at the end; the last one is the action. */
  footer?: ReactNode;
  /** Called for Escape and the close button; absent: the dialog cannot be dismissed. */
  onClose?: () => void;
  /** Called by Enter in a field and by Ctrl+Enter anywhere. */
  onSubmit?: () => void;
  /** `sheet` stands at the right edge over the full height. */
  form?: 'box' | 'wide' | 'sheet' | 'palette';
  /** True: the title is read out but not shown. */
  bare?: boolean;
}

/** Returns the field that has the focus at first; null where the dialog has none or names another element. */
const firstField = (dialog: HTMLDialogElement | null): HTMLElement | null =>
  dialog?.querySelector('[autofocus]') === null
    ? dialog.querySelector<HTMLElement>(`.${styles['body'] ?? ''} :is(input, select, textarea):enabled`)
    : null;

/** An open dialog. */
export function Dialog(props: DialogProps): ReactElement {
  const { title, children, footer, onClose, onSubmit, form = 'box', bare = false } = props;
  const dialog = useRef<HTMLDialogElement>(null);
  const id = useId();
  useEffect(() => {
    const { current } = dialog;
    const before = document.activeElement;
    current?.showModal();
    // The platform gives the focus to the first control, which is the button that closes.
    if (form === 'box' || form === 'wide') firstField(current)?.focus();
    return () => {
      current?.close();
      if (before instanceof HTMLElement) before.focus();
    };
  }, []);
  return (
    <dialog
      ref={dialog}
      className={cx(styles.dialog, styles[form])}
      aria-labelledby={id}
      onCancel={(event) => {
        event.preventDefault();
        onClose?.();
      }}
      onClick={(event) => {
        if (event.target === dialog.current) onClose?.();
      }}
      onKeyDown={(event) => {
        // Shortcuts of the page below do not act while a dialog is open.
        event.stopPropagation();
        if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) onSubmit?.();
      }}
    >
      <form
        className={styles.form}
        onSubmit={(event) => {
          event.preventDefault();
          onSubmit?.();
        }}
      >
        <header className={cx(styles.head, bare && 'visually-hidden')}>
          <h2 id={id}>{title}</h2>
          {onClose !== undefined && !bare && <Button look="quiet" icon="x" hint="Close" onClick={onClose} />}
        </header>
        {/* Keys scroll a dialog that is only read; one with fields scrolls by them. */}
        <div className={styles.body} tabIndex={footer === undefined && onSubmit === undefined && !bare ? 0 : undefined}>
          {children}
        </div>
        {footer !== undefined && <footer className={styles.foot}>{footer}</footer>}
      </form>
    </dialog>
  );
}
