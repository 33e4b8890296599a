// One item of a comparison: both reasons, the input, and both answers with what differs.
import type { ReactElement } from 'react';
import { Link } from 'wouter';
import { useOrganization } from '../../client/session.ts';
import { DiffView } from '../../diff/diff_view.tsx';
import { exact } from '../../text/format.ts';
import { TextView } from '../../trace/text/text_view.tsx';
import { Dialog } from '../../ui/dialog.tsx';
import { ErrorPanel } from '../../ui/error_panel.tsx';
import { Skeleton } from '../../ui/skeleton.tsx';
import styles from '../judges/judges.module.css';
import { VerdictMark } from '../judges/verdicts.tsx';
import { useTexts } from './answer_text.ts';
import type { ComparedItem } from './eval_data.ts';
import { ItemParts } from './item_view.tsx';

interface ComparedItemProps {
  item: ComparedItem;
  dataset_id: string | undefined;
  onClose: () => void;
}

/** The item in a dialog. */
export function ComparedItemView({ item, dataset_id, onClose }: ComparedItemProps): ReactElement {
  const { item_index, trace_id } = item;
  const sides = [
    ['Baseline', item.baseline_verdict, item.baseline_score, item.baseline_reason],
    ['Candidate', item.candidate_verdict, item.candidate_score, item.candidate_reason],
  ] as const;
  return (
    <Dialog title={item_index === undefined ? (trace_id ?? '') : `Item ${item_index}`} form="wide" onClose={onClose}>
      <div className={styles.stack}>
        <div className={styles.fields}>
          {sides.map(([label, verdict, score, reason]) => (
            <section key={label}>
              <h3>{label}</h3>
              {verdict === null ? (
                <p>Not judged</p>
              ) : (
                <p className={styles.line}>
                  <VerdictMark verdict={verdict} />
                  <span>score {exact(score)}</span>
                </p>
              )}
              <p className={styles.breaks}>{reason ?? ''}</p>
            </section>
          ))}
        </div>
        <ItemParts dataset_id={dataset_id} item_index={item_index} />
        {trace_id === undefined ? (
          <Answers baseline={item.baseline_trace_id ?? null} candidate={item.candidate_trace_id ?? null} />
        ) : (
          <OneAnswer trace_id={trace_id} />
        )}
      </div>
    </Dialog>
  );
}

/** Two runs of a dataset have an answer each. */
function Answers({ baseline, candidate }: { baseline: string | null; candidate: string | null }): ReactElement {
  const { org_id } = useOrganization();
  const [left, right] = [useTexts(org_id, baseline), useTexts(org_id, candidate)];
  const error = left.error ?? right.error;
  if (error !== null) return <ErrorPanel error={error} what="the answers" />;
  if (left.isLoading || right.isLoading) return <Skeleton rows={6} />;
  return (
    <>
      <DiffView
        title="Answers"
        left={left.data?.response ?? ''}
        right={right.data?.response ?? ''}
        sides={['Baseline', 'Candidate']}
      />
      <p className={styles.foot}>
        {baseline !== null && <TraceLink trace_id={baseline}>Trace of the baseline</TraceLink>}
        {candidate !== null && <TraceLink trace_id={candidate}>Trace of the candidate</TraceLink>}
      </p>
    </>
  );
}

/** Two evals over stored traces judged the same answer. */
function OneAnswer({ trace_id }: { trace_id: string }): ReactElement {
  const { org_id } = useOrganization();
  const { data, error } = useTexts(org_id, trace_id);
  if (error !== null) return <ErrorPanel error={error} what="the answer" />;
  if (data === undefined) return <Skeleton rows={4} />;
  return (
    <section>
      <h3>Answer that both judged</h3>
      {data.response === '' ? <p className={styles.quiet}>Empty</p> : <TextView text={data.response} label="Answer" />}
      <TraceLink trace_id={trace_id}>Open the trace</TraceLink>
    </section>
  );
}

function TraceLink({ trace_id, children }: { trace_id: string; children: string }): ReactElement {
  const { org_id } = useOrganization();
  return <Link href={`/o/${encodeURIComponent(org_id)}/traces/${encodeURIComponent(trace_id)}`}>{children}</Link>;
}
