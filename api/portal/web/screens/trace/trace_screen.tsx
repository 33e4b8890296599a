// The page of one trace. One request, the outline, draws everything but the texts.
import { keepPreviousData, useQuery, useQueryClient } from '@tanstack/react-query';
import { type ReactElement, useMemo, useState } from 'react';
import { RequestError } from '../../client/error.ts';
import { useOrganization } from '../../client/session.ts';
import type { TraceItem } from '../../lists/trace_data.ts';
import { usePageRequest } from '../../shell/page_request.ts';
import { usePageTitle } from '../../shell/page_title.ts';
import { useRouteParams } from '../../shell/route_params.ts';
import { ButtonLink } from '../../ui/button.tsx';
import { EmptyState } from '../../ui/empty_state.tsx';
import { ErrorPanel } from '../../ui/error_panel.tsx';
import { Skeleton } from '../../ui/skeleton.tsx';
import { buildModel, type TraceModel } from '../../trace/model/trace_model.ts';
import { oneLine } from '../../trace/text/one_line.ts';
import { TraceContext, TraceStore } from '../../trace/store.ts';
import { ListedHead, listedTrace } from './listed_head.tsx';
import { outlineQuery } from './trace_api.ts';
import { TraceBody } from './trace_body.tsx';
import { traceUrl } from './trace_url.ts';
import { useLiveOutline } from './use_live_outline.ts';
import styles from './trace_screen.module.css';

/** Shows the page of a trace. */
export default function TraceScreen(): ReactElement {
  const { org_id } = useOrganization();
  const traceId = useRouteParams()('trace_id');
  // While the next trace loads, the one before it stays on the screen, dimmed.
  const query = useQuery({ ...outlineQuery(org_id, traceId), placeholderData: keepPreviousData });
  usePageRequest(`/v1/traces/${encodeURIComponent(traceId)}/outline`);
  const outline = query.data?.data;
  useLiveOutline(org_id, traceId, outline?.complete === false && !query.isPlaceholderData);
  const queries = useQueryClient();
  const listed = outline === undefined ? listedTrace(queries, org_id, traceId) : undefined;
  usePageTitle(oneLine((outline?.trace ?? listed)?.root_span_name ?? traceId));
  const model = useMemo(() => (outline === undefined ? null : buildModel(outline)), [outline]);
  if (query.isError && outline === undefined)
    return <Failure error={query.error} onRetry={() => void query.refetch()} />;
  if (model === null) return <Loading listed={listed} />;
  return (
    <OpenTrace
      key={model.outline.trace.trace_id}
      model={model}
      meta={query.data?.meta ?? { total: model.tree.size, truncated: false }}
      isStale={query.isPlaceholderData}
    />
  );
}

/** The head from the row of the list, where there is one, above the rows to come. */
function Loading({ listed }: { listed: TraceItem | undefined }): ReactElement {
  return (
    <>
      {listed !== undefined && <ListedHead trace={listed} />}
      <div className={styles.loading}>
        {listed === undefined && <Skeleton rows={2} height={16} />}
        <Skeleton rows={20} height={12} />
      </div>
    </>
  );
}

function Failure({ error, onRetry }: { error: unknown; onRetry: () => void }): ReactElement {
  const { org_id } = useOrganization();
  if (error instanceof RequestError && error.status === 404)
    return (
      <EmptyState
        title="There is no such trace"
        action={<ButtonLink href={`/o/${org_id}/traces`}>Show the list of traces</ButtonLink>}
      >
        {error.detail} It may have expired, or its first event may still be on its way.
      </EmptyState>
    );
  return <ErrorPanel error={error} what="the trace" onRetry={onRetry} />;
}

/** Returns the span that is selected on opening: the one of the address, else the cause, else the root. */
function firstSpan({ tree, cause, root }: TraceModel): number {
  const named = tree.indexOf.get(traceUrl.parse(location.search).span);
  return named ?? cause?.span ?? (root < 0 && tree.size > 0 ? 0 : root);
}

interface OpenTraceProps {
  model: TraceModel;
  meta: { total: number; truncated: boolean };
  isStale: boolean;
}

/** Owns the store of one trace. A newer outline of the same trace goes into the same store. */
function OpenTrace({ model, meta, isStale }: OpenTraceProps): ReactElement {
  const [store] = useState(() => new TraceStore(model, firstSpan(model)));
  const [shown, setShown] = useState(model);
  if (shown !== model) {
    setShown(model);
    store.setModel(model);
  }
  return (
    <TraceContext value={store}>
      <TraceBody meta={meta} isStale={isStale} />
    </TraceContext>
  );
}
