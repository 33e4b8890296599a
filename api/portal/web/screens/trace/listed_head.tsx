// The head of a trace that is on its way, from the row of the list that it was opened from: outcome,
// agent and figures are known before the outline is there.
import type { QueryClient } from '@tanstack/react-query';
import type { ReactElement } from 'react';
import type { TraceItem } from '../../lists/trace_data.ts';
import { usePreferences } from '../../shell/preferences.ts';
import { count, duration, money, tokenFlow } from '../../text/format.ts';
import { fullTime } from '../../text/format_time.ts';
import { Name } from '../../trace/name.tsx';
import { OutcomeMark } from '../../ui/marks.tsx';
import { Fact } from './fact.tsx';
import { itemsOf } from './neighbours.ts';
import styles from './trace_head.module.css';

/** Returns the row of a trace in the lists that were loaded; undefined for a trace that was opened by a link. */
export function listedTrace(queries: QueryClient, org_id: string, trace_id: string): TraceItem | undefined {
  const lists = queries.getQueryCache().findAll({ queryKey: [org_id, '/v1/traces'] });
  for (const { state } of lists) {
    const item = itemsOf(state.data).find((one) => one.trace_id === trace_id);
    if (item !== undefined) return item;
  }
  return undefined;
}

/** The head. */
export function ListedHead({ trace }: { trace: TraceItem }): ReactElement {
  const { zone } = usePreferences();
  return (
    <header className={styles.head} aria-busy="true">
      <div className={styles.line}>
        <span className={styles.outcome} data-outcome={trace.outcome}>
          <OutcomeMark outcome={trace.outcome} silent />
          {trace.outcome}
        </span>
        {trace.agent_id !== null && <Name>{trace.agent_id}</Name>}
        <span className={styles.id}>
          <code>
            <Name>{trace.trace_id}</Name>
          </code>
        </span>
      </div>
      <dl className={styles.facts}>
        <Fact label="Started">{fullTime(trace.started_at, zone)}</Fact>
        <Fact label="Duration">{duration(trace.duration_ms)}</Fact>
        <Fact label="Cost">{money(trace.cost_usd)}</Fact>
        <Fact label="Tokens">{tokenFlow(trace.input_tokens, trace.output_tokens)}</Fact>
        <Fact label="Spans">{count(trace.span_count)}</Fact>
      </dl>
    </header>
  );
}
