// A dialog with a form: its fields, the refusal that belongs to none of them, and the button that sends it.
import type { ReactElement, ReactNode } from 'react';
import { Button } from '../../ui/button.tsx';
import { Dialog } from '../../ui/dialog.tsx';
import styles from './operator.module.css';

interface FormDialogProps {
  title: string;
  /** Text of the button that sends the form. */
  action: string;
  /** True: the button deletes. */
  danger?: boolean;
  isReady: boolean;
  isBusy: boolean;
  /** Refusal that belongs to no field; null for none. */
  refusal: string | null;
  wide?: boolean;
  onSend: () => void;
  onClose: () => void;
  children: ReactNode;
}

/** The dialog. */
export function FormDialog(props: FormDialogProps): ReactElement {
  const { title, action, danger = false, isReady, isBusy, refusal, wide = false, onSend, onClose, children } = props;
  return (
    <Dialog
      title={title}
      form={wide ? 'wide' : 'box'}
      onClose={onClose}
      onSubmit={() => {
        if (isReady && !isBusy) onSend();
      }}
      footer={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button
            look={danger ? 'danger' : 'primary'}
            type="submit"
            keys="Ctrl+Enter"
            disabled={!isReady}
            busy={isBusy}
          >
            {action}
          </Button>
        </>
      }
    >
      <div className={styles.section}>
        {refusal !== null && (
          <p role="alert" className={styles.error}>
            {refusal}
          </p>
        )}
        {children}
      </div>
    </Dialog>
  );
}
