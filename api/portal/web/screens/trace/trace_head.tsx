// The head of a trace: what it is, its figures, and the actions.
import type { ReactElement } from 'react';
import { Link } from 'wouter';
import { useOrganization } from '../../client/session.ts';
import { pageCurl } from '../../shell/page_request.ts';
import { usePreferences } from '../../shell/preferences.ts';
import { count, duration, exact, money, moneyExact, tokenFlow } from '../../text/format.ts';
import { fullTime } from '../../text/format_time.ts';
import { Button } from '../../ui/button.tsx';
import { Chip } from '../../ui/chip.tsx';
import { copyText, CopyButton } from '../../ui/copy_button.tsx';
import { OutcomeMark } from '../../ui/marks.tsx';
import { Menu, type MenuItem } from '../../ui/menu.tsx';
import { toast } from '../../ui/toast.tsx';
import { Name } from '../../trace/name.tsx';
import type { OutlineTrace } from '../../trace/model/outline.ts';
import { kindOf } from '../../trace/model/tree.ts';
import { spanOfRow, useTrace, useTraceStore } from '../../trace/store.ts';
import { CompareMenu } from './compare_menu.tsx';
import { QueueButton } from '../annotate/queue_button.tsx';
import { ToDatasetButton } from '../datasets/to_dataset_button.tsx';
import type { Targets } from '../datasets/to_dataset_dialog.tsx';
import { grantHref } from '../settings/grant_link.tsx';
import { shareWords } from './share_words.ts';
import { downloadTrace } from './download_trace.ts';
import { Fact } from './fact.tsx';
import styles from './trace_head.module.css';

const VERDICTS_SHOWN = 6;

interface TraceHeadProps {
  onScore: () => void;
  onReplay: () => void;
}

export function TraceHead({ onScore, onReplay }: TraceHeadProps): ReactElement {
  const { outline } = useTrace((snapshot) => snapshot.model);
  const { org_id } = useOrganization();
  const { trace, complete, scores } = outline;
  const filtered = (name: string, value: string): string =>
    `/o/${org_id}/traces?${new URLSearchParams({ [name]: value }).toString()}`;
  return (
    <header className={styles.head}>
      <div className={styles.line}>
        <span className={styles.outcome} data-outcome={trace.outcome}>
          <OutcomeMark outcome={trace.outcome} silent />
          {trace.outcome}
        </span>
        {!complete && <Chip tone="accent">open, spans may follow</Chip>}
        {trace.agent_id !== null && (
          <Link href={filtered('agent_id', trace.agent_id)} title="Traces of this agent">
            <Name>{trace.agent_id}</Name>
          </Link>
        )}
        <span className={styles.id}>
          <code title={trace.trace_id}>
            <Name>{trace.trace_id}</Name>
          </code>
          <CopyButton text={trace.trace_id} label="Copy trace id" />
        </span>
        <Actions trace={trace} onScore={onScore} onReplay={onReplay} />
      </div>
      <dl className={styles.facts}>
        <Figures trace={trace} />
        {trace.session_id !== null && (
          <Fact label="Session">
            <Link href={`/o/${org_id}/sessions/${encodeURIComponent(trace.session_id)}`}>
              <Name>{trace.session_id}</Name>
            </Link>
          </Fact>
        )}
        {trace.user_id !== null && (
          <Fact label="User">
            <Link href={`/o/${org_id}/users/${encodeURIComponent(trace.user_id)}`}>
              <Name>{trace.user_id}</Name>
            </Link>
          </Fact>
        )}
        {trace.tags.length > 0 && (
          <Fact label="Tags">
            {trace.tags.map((tag) => (
              <Link key={tag} href={filtered('tags', tag)} className={styles.tag}>
                <Name>{tag}</Name>
              </Link>
            ))}
          </Fact>
        )}
        {scores.length > 0 && (
          <Fact label="Verdicts">
            {scores.slice(0, VERDICTS_SHOWN).map(({ name, value, verdict }, index) => (
              <span key={index} className={styles.verdict} data-verdict={verdict} title={`${name}: ${String(value)}`}>
                <Name>{name}</Name> {verdict ?? String(value)}
              </span>
            ))}
            {scores.length > VERDICTS_SHOWN && ` and ${scores.length - VERDICTS_SHOWN} more`}
          </Fact>
        )}
      </dl>
    </header>
  );
}

function Figures({ trace }: { trace: OutlineTrace }): ReactElement {
  const { zone } = usePreferences();
  const { path, tree } = useTrace((snapshot) => snapshot.model);
  const idle = idleShare(path, tree.to - tree.from);
  return (
    <>
      <Fact label="Started">{fullTime(trace.started_at, zone)}</Fact>
      <Fact label="Duration" title={`${exact(trace.duration_ms)} ms`}>
        {duration(trace.duration_ms)}
        {idle >= 0.01 && <span className={styles.quiet}> ({shareWords(idle)} idle)</span>}
      </Fact>
      <Fact label="Cost" title={moneyExact(trace.cost_usd)}>
        {money(trace.cost_usd)}
      </Fact>
      <Fact label="Tokens" title={`${exact(trace.input_tokens)} in, ${exact(trace.output_tokens)} out`}>
        {tokenFlow(trace.input_tokens, trace.output_tokens)}
      </Fact>
      <Fact label="Spans">{count(trace.span_count)}</Fact>
    </>
  );
}

function idleShare(path: { span: Int32Array; from: Float64Array; to: Float64Array }, whole: number): number {
  let idle = 0;
  path.span.forEach((span, at) => {
    if (span < 0) idle += (path.to[at] ?? 0) - (path.from[at] ?? 0);
  });
  return whole > 0 ? idle / whole : 0;
}

function Actions({ trace, onScore, onReplay }: TraceHeadProps & { trace: OutlineTrace }): ReactElement {
  const { org_id, can } = useOrganization();
  const store = useTraceStore();
  const copy = (text: string | null, what: string): void => {
    if (text !== null)
      void copyText(text).then((isCopied) => {
        toast({ text: isCopied ? `Copied ${what}` : 'The browser refused to copy' });
      });
  };
  // A model call that is selected is an item of its own; else the whole trace is.
  const targets = (): Targets => {
    const { model, focusRow } = store.get();
    const span = spanOfRow(model, focusRow);
    return kindOf(model.tree, span) === 'llm'
      ? { trace_id: trace.trace_id, span_id: model.tree.spanId[span] ?? '' }
      : { trace_ids: [trace.trace_id] };
  };
  const items: MenuItem[] = [
    {
      label: 'Copy link',
      icon: 'link',
      aside: 'Y',
      onSelect: () => {
        copy(location.href, 'the link');
      },
    },
    {
      label: 'Copy as curl',
      icon: 'terminal',
      aside: 'y',
      onSelect: () => {
        copy(pageCurl(), 'the curl line');
      },
    },
    ...(can('traces:export')
      ? [
          {
            label: 'Export as NDJSON',
            icon: 'save' as const,
            onSelect: () => {
              void downloadTrace(org_id, trace.trace_id);
            },
          },
        ]
      : []),
    ...(can('grants:edit')
      ? [{ label: 'Grant access', icon: 'key' as const, href: grantHref(org_id, 'trace', trace.trace_id) }]
      : []),
  ];
  return (
    <span className={styles.actions}>
      <CompareMenu trace={trace} />
      <Button icon="replay" keys="r" hint="Replay the trace with the current prompts" onClick={onReplay}>
        Replay
      </Button>
      {can('ingest:write') && (
        <Button icon="star" keys="b" hint="Add a score" onClick={onScore}>
          Score
        </Button>
      )}
      <ToDatasetButton targets={targets} />
      <QueueButton trace_ids={[trace.trace_id]} />
      <Menu label="More actions" icon="more" align="end" items={items} />
    </span>
  );
}
