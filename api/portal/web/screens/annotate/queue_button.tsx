// The button and the key that add traces to an annotation queue. Its dialog is loaded when it opens.
import { type ReactElement, useState } from 'react';
import { useOrganization } from '../../client/session.ts';
import { useKeys } from '../../shell/keys.ts';
import { Button } from '../../ui/button.tsx';
import { deferred } from '../../ui/deferred.tsx';

const AddDialog = deferred(() => import('./add_dialog.tsx'));

interface QueueButtonProps {
  /** Chosen traces; empty: those of the query. */
  trace_ids: readonly string[];
  /** Query string of the list. */
  query?: string;
  /** True: only the key is there. */
  bare?: boolean;
}

/** The button; nothing for a person who may not change queues. */
export function QueueButton(props: QueueButtonProps): ReactElement | null {
  const { can } = useOrganization();
  return can('judges:write') ? <Allowed {...props} /> : null;
}

function Allowed({ trace_ids, query, bare = false }: QueueButtonProps): ReactElement {
  const [opens, setOpens] = useState(false);
  const open = (): void => {
    setOpens(true);
  };
  useKeys('Annotation', [{ keys: 'a', label: 'Add to an annotation queue', run: open }]);
  return (
    <>
      {!bare && (
        <Button icon="annotate" keys="a" hint="Add to an annotation queue" onClick={open}>
          Annotate
        </Button>
      )}
      {opens && (
        <AddDialog
          {...(trace_ids.length === 0 ? {} : { trace_ids })}
          {...(query === undefined ? {} : { query })}
          onClose={() => {
            setOpens(false);
          }}
        />
      )}
    </>
  );
}
