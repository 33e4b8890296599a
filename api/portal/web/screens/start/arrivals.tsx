// Listens until the first trace arrives and becomes the link to it. The stream brings the trace itself, and
// a read finds what landed before the stream was open.
import { useQuery } from '@tanstack/react-query';
import { type ReactElement, useState } from 'react';
import { Link } from 'wouter';
import { apiQuery } from '../../client/api.ts';
import { useOrganization } from '../../client/session.ts';
import type { TraceItem } from '../../lists/trace_data.ts';
import { useLiveTraces } from '../../live/use_live_traces.ts';
import { count } from '../../text/format.ts';
import { EmptyState } from '../../ui/empty_state.tsx';
import { Moment } from '../../ui/moment.tsx';
import { OutcomeMark } from '../../ui/marks.tsx';
import styles from './start.module.css';

/** A trace whose event the stream did not bring is found after this time. */
const POLL_MS = 15_000;
/** Query of the stream: all traces of the organization. */
const STREAM = 'topics=traces';
const SHOWN = 5;
/** Traces that landed while the page was opened count as new. */
const LEEWAY_MS = 5000;

/** The line that listens, and what was refused. */
export function Arrivals({ since }: { since: number }): ReactElement {
  const { org_id, can } = useOrganization();
  const from = new Date(since - LEEWAY_MS).toISOString();
  const traces = useQuery({
    ...apiQuery(org_id, '/v1/traces', { query: { limit: SHOWN } }),
    enabled: can('traces:read'),
    refetchInterval: POLL_MS,
  });
  const [streamed, setStreamed] = useState<readonly TraceItem[]>([]);
  const receive = (batch: readonly TraceItem[]): void => {
    setStreamed((now) => newestOf([...batch, ...now]));
  };
  useLiveTraces(org_id, can('traces:read') ? STREAM : null, receive, () => void traces.refetch());
  if (!can('traces:read')) {
    return (
      <EmptyState title="Your role may not read traces">
        A trace that you send arrives all the same; members of the organization see it.
      </EmptyState>
    );
  }
  const arrived = newestOf([...streamed, ...(traces.data?.data ?? [])]);
  const fresh = arrived.filter(({ started_at }) => started_at >= from);
  return (
    <div className={styles.arrivals} role="status">
      {arrived.length === 0 && (
        <p className={styles.waiting}>
          <span className={styles.pulse} aria-hidden="true" />
          Listening for the first trace …
        </p>
      )}
      {arrived.length > 0 && fresh.length === 0 && (
        <p className={styles.hint}>The newest traces of this organization; a new one appears here by itself.</p>
      )}
      {arrived.map(({ trace_id, root_span_name, outcome, span_count, started_at }) => (
        <p key={trace_id} className={styles.arrived}>
          <OutcomeMark outcome={outcome} />
          <Link href={`/o/${encodeURIComponent(org_id)}/traces/${encodeURIComponent(trace_id)}`}>
            {root_span_name ?? trace_id}
          </Link>
          <span className={styles.hint}>
            {started_at >= from && 'arrived, '}
            {count(span_count)} {span_count === 1 ? 'span' : 'spans'}, <Moment at={started_at} form="ago" />
          </span>
        </p>
      ))}
    </div>
  );
}

/** Returns the newest traces, each once as it came first. */
function newestOf(traces: readonly TraceItem[]): TraceItem[] {
  const known = new Map<string, TraceItem>();
  for (const trace of traces) if (!known.has(trace.trace_id)) known.set(trace.trace_id, trace);
  return [...known.values()].toSorted((a, b) => b.started_at.localeCompare(a.started_at)).slice(0, SHOWN);
}
