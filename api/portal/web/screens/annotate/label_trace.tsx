// One trace to label: its name, and its conversation as on the page of the trace.
import { useQuery } from '@tanstack/react-query';
import { type ReactElement, useMemo, useState } from 'react';
import { RequestError } from '../../client/error.ts';
import { useOrganization } from '../../client/session.ts';
import { buildModel, type TraceModel } from '../../trace/model/trace_model.ts';
import { Name, shownName } from '../../trace/name.tsx';
import { TraceContext, TraceStore } from '../../trace/store.ts';
import { duration } from '../../text/format.ts';
import { EmptyState } from '../../ui/empty_state.tsx';
import { ErrorPanel } from '../../ui/error_panel.tsx';
import { OutcomeMark } from '../../ui/marks.tsx';
import { Skeleton } from '../../ui/skeleton.tsx';
import { Conversation } from '../trace/conversation.tsx';
import { outlineQuery } from '../trace/trace_api.ts';
import styles from './annotate.module.css';

/** @param title heading of a side of a pair; null for a single trace */
export function LabelTrace({ traceId, title }: { traceId: string; title: string | null }): ReactElement {
  const { org_id } = useOrganization();
  const query = useQuery(outlineQuery(org_id, traceId));
  const outline = query.data?.data;
  const model = useMemo(() => (outline === undefined ? null : buildModel(outline)), [outline]);
  const href = `/o/${encodeURIComponent(org_id)}/traces/${encodeURIComponent(traceId)}`;
  return (
    <section className={styles.trace} aria-label={title ?? 'Trace'}>
      <header className={styles.traceHead}>
        {title !== null && <b>{title}</b>}
        {outline !== undefined && (
          <>
            <OutcomeMark outcome={outline.trace.outcome} />
            <Name>{shownName(outline.trace.root_span_name ?? '')}</Name>
            <span className={styles.quiet}>{duration(outline.trace.duration_ms)}</span>
          </>
        )}
        <a href={href} target="_blank" rel="noopener" title="Shortcut (o)">
          Open the full trace
        </a>
      </header>
      {model !== null ? (
        <Loaded key={traceId} model={model} traceId={traceId} />
      ) : query.isError ? (
        <Failure error={query.error} onRetry={() => void query.refetch()} />
      ) : (
        <Skeleton rows={10} height={16} />
      )}
    </section>
  );
}

function Failure({ error, onRetry }: { error: unknown; onRetry: () => void }): ReactElement {
  if (error instanceof RequestError && error.status === 404)
    return (
      <EmptyState title="The trace is gone">It has expired or was erased since it was added. Skip the item.</EmptyState>
    );
  return <ErrorPanel error={error} what="the trace" onRetry={onRetry} />;
}

function Loaded({ model, traceId }: { model: TraceModel; traceId: string }): ReactElement {
  const [store] = useState(() => new TraceStore(model, model.root));
  return (
    <TraceContext value={store}>
      <Conversation traceId={traceId} selects={false} />
    </TraceContext>
  );
}
