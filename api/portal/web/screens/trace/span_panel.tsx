// The panel of the selected span. Its head comes from the outline and is there in the frame of the
// selection; the texts follow when their request is answered.
import { useQuery } from '@tanstack/react-query';
import { type ReactElement, useDeferredValue } from 'react';
import { hasSpanFlag, type SpanFlag } from '../../../../../pipeline/domain/traces/span_flags.ts';
import { useOrganization } from '../../client/session.ts';
import { compact, duration, money, moneyExact, tokenFlow } from '../../text/format.ts';
import { Button } from '../../ui/button.tsx';
import { CopyButton } from '../../ui/copy_button.tsx';
import { ErrorPanel } from '../../ui/error_panel.tsx';
import { KindMark, OutcomeMark } from '../../ui/marks.tsx';
import { Skeleton } from '../../ui/skeleton.tsx';
import { type Tab, Tabs } from '../../ui/tabs.tsx';
import { KIND_WORDS, Name, shownName } from '../../trace/name.tsx';
import { groupOfRow, isGroupRow } from '../../trace/model/rows.ts';
import { kindOf, modelOf, nameOf, outcomeOf } from '../../trace/model/tree.ts';
import { spanOfRow, useTrace, useTraceStore } from '../../trace/store.ts';
import { AttributesTab } from './attributes_tab.tsx';
import { EventsTab } from './events_tab.tsx';
import { MessagesTab } from './messages_tab.tsx';
import { RawTab } from './raw_tab.tsx';
import { ScoresTab } from './scores_tab.tsx';
import { InputOutputTab } from './io_tab.tsx';
import { type SpanDetail, spanQuery } from './trace_api.ts';
import type { TabName } from './trace_url.ts';
import { useSpanAhead } from './use_span_ahead.ts';
import styles from './span_panel.module.css';

/** Flags that the panel shows, each with its label and its explanation. */
const FLAG_WORDS: readonly [SpanFlag, string, string][] = [
  ['usage_estimated', 'tokens estimated', 'The client reported no token counts, so the service estimated them.'],
  ['price_missing', 'price missing', 'The model has no price, so the cost is 0.'],
  ['prompt_truncated', 'prompt truncated', 'The prompt was longer than the limit of the organization.'],
  ['redacted', 'redacted', 'Personal data was redacted from the span.'],
  ['times_estimated', 'times estimated', 'The client sent no times for this step, so the service derived them.'],
];

interface SpanPanelProps {
  traceId: string;
  tab: TabName;
  onTab: (tab: TabName) => void;
  onScore: () => void;
}

const tabsOf = (detail: SpanDetail | undefined): Tab[] => [
  { id: 'messages', label: 'Messages', keys: 'm' },
  { id: 'io', label: 'Input/Output', keys: 'i' },
  { id: 'attributes', label: 'Attributes', keys: 'A' },
  { id: 'events', label: counted('Events and links', detail && detail.events.length + detail.links.length) },
  { id: 'scores', label: counted('Scores', detail?.scores.length), keys: 'S' },
  { id: 'raw', label: 'Raw', keys: 'R' },
];

const counted = (label: string, total: number | undefined): string =>
  total === undefined || total === 0 ? label : `${label} ${total}`;

export function SpanPanel({ traceId, tab, onTab, onScore }: SpanPanelProps): ReactElement {
  const { org_id } = useOrganization();
  const model = useTrace((snapshot) => snapshot.model);
  const row = useTrace((snapshot) => snapshot.focusRow);
  const span = spanOfRow(model, row);
  // Holding a key down moves the selection many times a second; the panel follows when there is time.
  const shown = useDeferredValue(span);
  const spanId = model.tree.spanId[shown] ?? '';
  const detail = useQuery(spanQuery(org_id, traceId, spanId));
  useSpanAhead(traceId, row, shown === span && detail.isSuccess);
  return (
    <section className={styles.panel} aria-label="Span">
      <PanelHead span={span} row={row} detail={detail.data?.data} />
      <Tabs
        label="Parts of the span"
        tabs={tabsOf(detail.data?.data)}
        selected={tab}
        onSelect={(id) => {
          onTab(id as TabName);
        }}
      >
        <div className={styles.body} key={spanId}>
          {detail.isError ? (
            <ErrorPanel error={detail.error} what="the span" onRetry={() => void detail.refetch()} />
          ) : detail.data === undefined ? (
            <Skeleton rows={6} />
          ) : (
            <TabBody tab={tab} traceId={traceId} detail={detail.data.data} onScore={onScore} />
          )}
        </div>
      </Tabs>
    </section>
  );
}

interface TabBodyProps {
  tab: TabName;
  traceId: string;
  detail: SpanDetail;
  onScore: () => void;
}

function TabBody({ tab, traceId, detail, onScore }: TabBodyProps): ReactElement {
  switch (tab) {
    case 'messages':
      return <MessagesTab traceId={traceId} detail={detail} />;
    case 'io':
      return <InputOutputTab traceId={traceId} detail={detail} />;
    case 'attributes':
      return <AttributesTab detail={detail} />;
    case 'events':
      return <EventsTab detail={detail} />;
    case 'scores':
      return <ScoresTab detail={detail} onScore={onScore} />;
    case 'raw':
      return <RawTab detail={detail} />;
  }
}

function PanelHead({ span, row, detail }: { span: number; row: number; detail: SpanDetail | undefined }): ReactElement {
  const store = useTraceStore();
  const model = useTrace((snapshot) => snapshot.model);
  const { tree } = model;
  const kind = kindOf(tree, span);
  const outcome = outcomeOf(tree, span);
  const name = nameOf(tree, span);
  const message = tree.errors.get(span) ?? '';
  const members = isGroupRow(row) ? (model.groups.members[groupOfRow(row)] ?? 0) : 0;
  return (
    <header className={styles.head}>
      <div className={styles.title}>
        <KindMark kind={kind} />
        <h2 className={styles.name} title={name}>
          <Name>{shownName(name)}</Name>
        </h2>
        {outcome !== 'success' && <OutcomeMark outcome={outcome} />}
        <span className={styles.id}>
          <code title={tree.spanId[span]}>
            <Name>{tree.spanId[span] ?? ''}</Name>
          </code>
          <CopyButton text={tree.spanId[span] ?? ''} label="Copy span id" />
        </span>
      </div>
      <Facts span={span} detail={detail} />
      {message !== '' && (
        <p className={styles.error} dir="auto">
          {message}
        </p>
      )}
      {members > 0 && (
        <p className={styles.group}>
          The first of {members} spans of this name in a row.{' '}
          <Button
            look="quiet"
            icon="unfold"
            onClick={() => {
              store.setOpen(row, true);
            }}
          >
            Unfold {members} spans
          </Button>
        </p>
      )}
    </header>
  );
}

function Facts({ span, detail }: { span: number; detail: SpanDetail | undefined }): ReactElement {
  const { tree } = useTrace((snapshot) => snapshot.model);
  const spanModel = modelOf(tree, span);
  const cost = tree.cost[span] ?? 0;
  const tokens = (tree.inputTokens[span] ?? 0) + (tree.outputTokens[span] ?? 0);
  return (
    <p className={styles.facts}>
      <span>{KIND_WORDS[kindOf(tree, span)]}</span>
      {spanModel !== '' && spanModel !== nameOf(tree, span) && <Name>{spanModel}</Name>}
      <span title="Duration">{duration((tree.end[span] ?? 0) - (tree.start[span] ?? 0))}</span>
      <span title="Start, from the start of the trace">at {duration(tree.start[span] ?? 0)}</span>
      {(tree.firstToken[span] ?? -1) >= 0 && (
        <span title="Time to the first token">first token {duration(tree.firstToken[span])}</span>
      )}
      {tokens > 0 && (
        <span title="Input and output tokens">
          {tokenFlow(tree.inputTokens[span], tree.outputTokens[span])} tokens
          {detail !== undefined && detail.cached_input_tokens > 0
            ? `, ${compact(detail.cached_input_tokens)} cached`
            : ''}
        </span>
      )}
      {cost > 0 && <span title={moneyExact(cost)}>{money(cost)}</span>}
      {FLAG_WORDS.filter(([flag]) => hasSpanFlag(tree.flags[span] ?? 0, flag)).map(([flag, words, title]) => (
        <span key={flag} title={title}>
          {words}
        </span>
      ))}
      {detail?.prompt_name != null && (
        <span title="Registered prompt">
          prompt <Name>{`${detail.prompt_name} ${detail.prompt_version ?? ''}`}</Name>
        </span>
      )}
    </p>
  );
}
