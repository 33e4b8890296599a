// One judged item: the verdict with its reason, the input, the answer and the expectation.
import { useQuery } from '@tanstack/react-query';
import type { ReactElement } from 'react';
import { Link } from 'wouter';
import { apiQuery } from '../../client/api.ts';
import { FRESH } from '../../client/query_client.ts';
import { useOrganization } from '../../client/session.ts';
import { exact } from '../../text/format.ts';
import { TextView } from '../../trace/text/text_view.tsx';
import { Dialog } from '../../ui/dialog.tsx';
import { ErrorPanel } from '../../ui/error_panel.tsx';
import { Skeleton } from '../../ui/skeleton.tsx';
import { VerdictMark } from '../judges/verdicts.tsx';
import styles from '../judges/judges.module.css';
import { useTexts } from './answer_text.ts';
import type { ScoreLine } from './score_stream.ts';

/** Returns the item of a dataset by its place. */
function useItem(org_id: string, dataset_id: string | undefined, item_index: number | undefined) {
  return useQuery({
    ...apiQuery(org_id, '/v1/datasets/{dataset_id}/items', {
      path: { dataset_id: dataset_id ?? '' },
      query: { limit: 1, offset: item_index ?? 0 },
    }),
    enabled: dataset_id !== undefined && item_index !== undefined,
    staleTime: FRESH.complete_trace,
  });
}

interface ItemViewProps {
  line: ScoreLine;
  dataset_id: string | undefined;
  onClose: () => void;
}

/** The item in a sheet. */
export function ItemView({ line, dataset_id, onClose }: ItemViewProps): ReactElement {
  const { org_id } = useOrganization();
  const title = line.item_index === undefined ? line.trace_id : `Item ${line.item_index}`;
  return (
    <Dialog title={title} form="sheet" onClose={onClose}>
      <div className={styles.stack}>
        <p className={styles.line}>
          <VerdictMark verdict={line.verdict} />
          <span>score {exact(line.score)}</span>
        </p>
        <section>
          <h3>Reason</h3>
          <p className={styles.breaks}>{line.reason === '' ? 'The judge gave no reason.' : line.reason}</p>
        </section>
        <ItemParts dataset_id={dataset_id} item_index={line.item_index} />
        {line.trace_id === '' ? null : <Answer trace_id={line.trace_id} withPrompt={dataset_id === undefined} />}
        {line.trace_id !== '' && (
          <Link href={`/o/${encodeURIComponent(org_id)}/traces/${encodeURIComponent(line.trace_id)}`}>
            Open the trace
          </Link>
        )}
      </div>
    </Dialog>
  );
}

/** The input and the expectation of an item of a dataset. */
export function ItemParts({
  dataset_id,
  item_index,
}: {
  dataset_id: string | undefined;
  item_index: number | undefined;
}): ReactElement | null {
  const { org_id } = useOrganization();
  const item = useItem(org_id, dataset_id, item_index);
  if (dataset_id === undefined || item_index === undefined) return null;
  if (item.error !== null) return <ErrorPanel error={item.error} what="the item of the dataset" />;
  const found = item.data?.data[0];
  if (item.data === undefined) return <Skeleton rows={3} />;
  if (found === undefined) return <p>The dataset no longer has this item.</p>;
  return (
    <>
      <JudgedText title="Input" text={JSON.stringify(found.input, null, 2)} />
      {found.expected !== null && <JudgedText title="Expected" text={JSON.stringify(found.expected, null, 2)} />}
    </>
  );
}

function Answer({ trace_id, withPrompt }: { trace_id: string; withPrompt: boolean }): ReactElement {
  const { org_id } = useOrganization();
  const { data, error, refetch } = useTexts(org_id, trace_id);
  if (error !== null) return <ErrorPanel error={error} what="the answer" onRetry={() => void refetch()} />;
  if (data === undefined) return <Skeleton rows={4} />;
  return (
    <>
      {withPrompt && data.prompt !== '' && <JudgedText title="Prompt" text={data.prompt} />}
      <JudgedText title="Answer" text={data.response} />
    </>
  );
}

function JudgedText({ title, text }: { title: string; text: string }): ReactElement {
  return (
    <section>
      <h3>{title}</h3>
      {text === '' ? <p className={styles.quiet}>Empty</p> : <TextView text={text} label={title} />}
    </section>
  );
}
