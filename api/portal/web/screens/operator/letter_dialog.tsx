// One dead letter with its body, and what can be done with it: replay or deletion.
import { useMutation, useQuery } from '@tanstack/react-query';
import { type ReactElement, useState } from 'react';
import { type Answer, apiQuery, send } from '../../client/api.ts';
import { bytes } from '../../text/format.ts';
import { Button } from '../../ui/button.tsx';
import { CopyButton } from '../../ui/copy_button.tsx';
import { Dialog } from '../../ui/dialog.tsx';
import { ErrorPanel } from '../../ui/error_panel.tsx';
import { Moment } from '../../ui/moment.tsx';
import { Skeleton } from '../../ui/skeleton.tsx';
import { toast } from '../../ui/toast.tsx';
import styles from './operator.module.css';

type Letter = Answer<'/admin/dead-letters/{seq}'>['data'];

interface LetterDialogProps {
  seq: number;
  onClose: () => void;
  /** Called when the letter was replayed or deleted. */
  onGone: () => Promise<void>;
}

/** The dialog. */
export function LetterDialog({ seq, onClose, onGone }: LetterDialogProps): ReactElement {
  const path = { path: { seq: String(seq) } };
  const letter = useQuery({ ...apiQuery(null, '/admin/dead-letters/{seq}', path), staleTime: Infinity });
  const gone = (words: string) => async (): Promise<void> => {
    toast({ text: words });
    onClose();
    await onGone();
  };
  const replay = useMutation({
    mutationFn: () => send(null, 'post', '/admin/dead-letters/{seq}/replay', { params: path }),
    onSuccess: gone('The event is replayed. It lands in a few seconds, or becomes a dead letter again.'),
  });
  const remove = useMutation({
    mutationFn: () => send(null, 'delete', '/admin/dead-letters/{seq}', { params: path }),
    onSuccess: gone('The dead letter is deleted.'),
  });
  const found = letter.data?.data;
  const error = replay.error ?? remove.error;
  return (
    <Dialog
      title={`Dead letter ${seq}`}
      form="wide"
      onClose={onClose}
      {...(found === undefined ? {} : { footer: <Actions letter={found} replay={replay} remove={remove} /> })}
    >
      <div className={styles.section}>
        {error !== null && <ErrorPanel error={error} what="the dead letter" />}
        {found === undefined ? (
          letter.isError ? (
            <ErrorPanel error={letter.error} what="the dead letter" onRetry={() => void letter.refetch()} />
          ) : (
            <Skeleton rows={8} height={20} />
          )
        ) : (
          <Facts letter={found} />
        )}
      </div>
    </Dialog>
  );
}

interface Change {
  isPending: boolean;
  mutate: () => void;
}

interface ActionsProps {
  letter: Letter;
  replay: Change;
  remove: Change;
}

/** The buttons. The second press of the first one deletes. */
function Actions({ letter, replay, remove }: ActionsProps): ReactElement {
  const [asks, setAsks] = useState(false);
  return (
    <>
      <Button
        look="danger"
        icon="trash"
        busy={remove.isPending}
        onClick={() => {
          if (asks) remove.mutate();
          else setAsks(true);
        }}
      >
        {asks ? 'Delete it: the event is lost' : 'Delete letter'}
      </Button>
      {letter.replayable && (
        <Button
          look="primary"
          icon="replay"
          busy={replay.isPending}
          onClick={() => {
            replay.mutate();
          }}
        >
          Replay event
        </Button>
      )}
    </>
  );
}

function Facts({ letter }: { letter: Letter }): ReactElement {
  const { stage, reason, detail, died_at, org_id, format, event_id, trace_id, body, body_bytes, body_complete } =
    letter;
  return (
    <>
      <p>{detail}</p>
      <dl className={styles.facts}>
        <dt>Died</dt>
        <dd>
          <Moment at={died_at} form="full" />
        </dd>
        <dt>Stage</dt>
        <dd>
          {stage} ({reason})
        </dd>
        {org_id !== null && (
          <>
            <dt>Organization</dt>
            <dd>{org_id}</dd>
            <dt>Event</dt>
            <dd>
              {event_id} ({format})
            </dd>
            <dt>Trace</dt>
            <dd>{trace_id}</dd>
          </>
        )}
      </dl>
      <div className={styles.tools}>
        <h3 className={styles.grow}>
          Body ({bytes(body_bytes)}
          {body_complete ? '' : ', a part of it'})
        </h3>
        <CopyButton text={body} label="Copy body" labelled />
      </div>
      <pre className={styles.body} tabIndex={0} aria-label="Body">
        {body}
      </pre>
    </>
  );
}
