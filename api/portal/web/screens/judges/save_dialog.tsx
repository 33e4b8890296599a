// Shows what differs between the stored version of a judge and the one that is saved.
import type { ReactElement } from 'react';
import { DiffView } from '../../diff/diff_view.tsx';
import { Button } from '../../ui/button.tsx';
import { Dialog } from '../../ui/dialog.tsx';
import { definitionText, type DraftBody, type Judge } from './draft.ts';

interface SaveDialogProps {
  judge: Judge;
  body: DraftBody;
  busy: boolean;
  onSave: () => void;
  onClose: () => void;
}

/** The dialog. */
export function SaveDialog({ judge, body, busy, onSave, onClose }: SaveDialogProps): ReactElement {
  const next = judge.version + 1;
  return (
    <Dialog
      title={`Save version ${next} of ${judge.name}`}
      form="wide"
      onClose={onClose}
      onSubmit={onSave}
      footer={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button look="primary" type="submit" busy={busy} keys="Control+Enter">
            {`Save version ${next}`}
          </Button>
        </>
      }
    >
      <DiffView
        title="Definition"
        left={definitionText(judge)}
        right={definitionText(body)}
        sides={[`Version ${judge.version}`, `Version ${next}`]}
      />
    </Dialog>
  );
}
