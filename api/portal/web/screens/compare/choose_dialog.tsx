// The dialog that chooses the trace to compare with: one of the same agent and name, or any by its id.
import { useQuery } from '@tanstack/react-query';
import { type ReactElement, useState } from 'react';
import { navigate } from 'wouter/use-browser-location';
import { useOrganization } from '../../client/session.ts';
import { duration, money } from '../../text/format.ts';
import { Button } from '../../ui/button.tsx';
import { Dialog } from '../../ui/dialog.tsx';
import { ErrorPanel } from '../../ui/error_panel.tsx';
import { Field, Input } from '../../ui/field.tsx';
import layerStyles from '../../ui/layer.module.css';
import { OutcomeMark } from '../../ui/marks.tsx';
import { Moment } from '../../ui/moment.tsx';
import { Skeleton } from '../../ui/skeleton.tsx';
import { Name } from '../../trace/name.tsx';
import { candidatesOf, type Compared, comparePath } from './candidates.ts';
import styles from './compare.module.css';

/** The dialog. */
export default function ChooseDialog({ trace, onClose }: { trace: Compared; onClose: () => void }): ReactElement {
  const { org_id } = useOrganization();
  const [id, setId] = useState('');
  const go = (baseline: string): void => {
    onClose();
    navigate(comparePath(org_id, baseline, trace.trace_id));
  };
  const typed = id.trim();
  return (
    <Dialog
      title="Choose a baseline"
      onClose={onClose}
      onSubmit={() => {
        if (typed !== '') go(typed);
      }}
      footer={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button look="primary" type="submit" disabled={typed === ''}>
            Compare traces
          </Button>
        </>
      }
    >
      <div className={styles.choices}>
        <Field label="Trace id" hint="Or choose one of the newest traces of the same agent and name.">
          {(control) => (
            <Input
              {...control}
              value={id}
              onChange={(event) => {
                setId(event.currentTarget.value);
              }}
            />
          )}
        </Field>
        <Candidates trace={trace} onChoose={go} />
      </div>
    </Dialog>
  );
}

interface CandidatesProps {
  trace: Compared;
  onChoose: (trace_id: string) => void;
}

/** The newest traces of the same agent and name, as a list of buttons. */
function Candidates({ trace, onChoose }: CandidatesProps): ReactElement {
  const { org_id } = useOrganization();
  const query = useQuery({
    queryKey: [org_id, '/v1/traces', 'candidates', trace.trace_id],
    queryFn: ({ signal }) => candidatesOf(org_id, trace, signal),
  });
  if (query.isError) return <ErrorPanel error={query.error} what="the traces" onRetry={() => void query.refetch()} />;
  if (query.data === undefined) return <Skeleton rows={6} />;
  if (query.data.length === 0) return <p>There is no other trace of this agent and name.</p>;
  return (
    <ul className={styles.list}>
      {query.data.map(({ trace_id, outcome, started_at, duration_ms, cost_usd }) => (
        <li key={trace_id}>
          <button
            type="button"
            className={layerStyles.item}
            onClick={() => {
              onChoose(trace_id);
            }}
          >
            <OutcomeMark outcome={outcome} />
            <Moment at={started_at} />
            <span className={layerStyles.label}>
              <Name>{trace_id}</Name>
            </span>
            <span className={layerStyles.aside}>
              {duration(duration_ms)} · {money(cost_usd)}
            </span>
          </button>
        </li>
      ))}
    </ul>
  );
}
