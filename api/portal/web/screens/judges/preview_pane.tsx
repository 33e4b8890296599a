// The right side of the editor: real traces in scope with what the draft says of them, worst first.
import type { ReactElement } from 'react';
import { Link } from 'wouter';
import type { Preview as TraceTexts } from '../../lists/previews.ts';
import { nameOf } from '../../lists/trace_data.ts';
import { count, money, moneyExact } from '../../text/format.ts';
import { Button } from '../../ui/button.tsx';
import { EmptyState } from '../../ui/empty_state.tsx';
import { ErrorPanel } from '../../ui/error_panel.tsx';
import { Moment } from '../../ui/moment.tsx';
import { Skeleton } from '../../ui/skeleton.tsx';
import lists from '../sessions/sessions.module.css';
import styles from './judges.module.css';
import { refusedField } from './draft.ts';
import type { Preview, ScopeTrace, useModelPreview } from './use_preview.ts';
import { VerdictMark, VERDICTS_WORST_FIRST } from './verdicts.tsx';

interface PaneProps {
  org_id: string;
  traces: readonly ScopeTrace[];
  loading: boolean;
  /** Failure of the list of traces. */
  failure: { error: unknown; retry: () => void } | null;
  texts: ReadonlyMap<string, TraceTexts> | undefined;
  preview: Preview | undefined;
  /** True while newer verdicts are on the way. */
  waiting: boolean;
  error: unknown;
  /** For a model: its price and the button; null for a rule. */
  model: ReturnType<typeof useModelPreview> | null;
}

/** The pane. */
export function PreviewPane(props: PaneProps): ReactElement {
  const { traces, loading, failure, preview, waiting, error, model } = props;
  return (
    <section className={styles.pane} aria-labelledby="preview" aria-busy={waiting || undefined}>
      <h2 id="preview">On real traces</h2>
      {model !== null && traces.length > 0 && <ModelButton model={model} traces={traces.length} />}
      <p role="status" className={styles.quiet}>
        {preview === undefined || error !== null ? '' : summaryOf(preview)}
      </p>
      {/* The field that is refused shows the error itself. */}
      {error !== null && refusedField(error) === null && <ErrorPanel error={error} what="the preview" />}
      {failure !== null ? (
        <ErrorPanel error={failure.error} what="the traces in scope" onRetry={failure.retry} />
      ) : loading ? (
        <Skeleton rows={8} height={40} />
      ) : traces.length === 0 ? (
        <EmptyState title="No trace in scope in the last 7 days">
          The preview judges the newest traces that match the scope. Widen the scope, or save the judge: it judges
          traces as they complete.
        </EmptyState>
      ) : (
        <Rows {...props} />
      )}
    </section>
  );
}

function summaryOf({ verdicts }: Preview): string {
  const number = (verdict: string): number => verdicts.filter((one) => one.verdict === verdict).length;
  const [failed, warned, errors] = [number('fail'), number('warn'), number('error')];
  return [
    `${count(number('pass'))} of ${count(verdicts.length)} pass`,
    failed > 0 ? `${count(failed)} fail` : '',
    warned > 0 ? `${count(warned)} warn` : '',
    errors > 0 ? `${count(errors)} could not be judged` : '',
  ]
    .filter((part) => part !== '')
    .join(', ');
}

function ModelButton({
  model: { ready, price, run },
  traces,
}: {
  model: NonNullable<PaneProps['model']>;
  traces: number;
}): ReactElement {
  const dry = price.data?.data;
  const cost =
    dry === undefined
      ? null
      : dry.cost_usd === null
        ? 'no price of this model is known'
        : `about ${money(dry.cost_usd)}`;
  const quota = dry?.quota ?? null;
  return (
    <div className={styles.foot}>
      <Button
        icon="play"
        keys="Control+Shift+Enter"
        busy={run.isPending}
        disabled={!ready || dry === undefined}
        hint={dry?.cost_usd == null ? undefined : moneyExact(dry.cost_usd)}
        onClick={() => {
          run.mutate();
        }}
      >
        {`Judge ${count(traces)} ${traces === 1 ? 'trace' : 'traces'}${cost === null ? '' : ` (${cost})`}`}
      </Button>
      {quota !== null && (
        <span className={styles.quiet}>
          {quota.limit === null
            ? `${count(quota.used)} judge calls in this period`
            : `${count(quota.used)} of ${count(quota.limit)} judge calls used in this period`}
        </span>
      )}
    </div>
  );
}

function Rows({ org_id, traces, texts, preview, waiting }: PaneProps): ReactElement {
  const verdicts = new Map(preview?.verdicts.map((one) => [one.trace_id, one]));
  // Judges leave out the traces that their own calls made.
  const judged = verdicts.size === 0 || waiting ? traces : traces.filter(({ trace_id }) => verdicts.has(trace_id));
  const rank = ({ trace_id }: ScopeTrace): number => {
    const verdict = verdicts.get(trace_id)?.verdict;
    return verdict === undefined ? VERDICTS_WORST_FIRST.length : VERDICTS_WORST_FIRST.indexOf(verdict);
  };
  return (
    <ol className={lists.cards} aria-label="Traces with their verdicts">
      {judged
        .toSorted((a, b) => rank(a) - rank(b))
        .map((trace) => {
          const said = verdicts.get(trace.trace_id);
          const text = texts?.get(trace.trace_id);
          return (
            <li key={trace.trace_id} className={styles.item}>
              <span className={styles.line}>
                <Link
                  href={`/o/${encodeURIComponent(org_id)}/traces/${encodeURIComponent(trace.trace_id)}`}
                  target="_blank"
                >
                  {nameOf(trace)}
                </Link>
                {said === undefined ? (
                  <Moment at={trace.started_at} form="ago" />
                ) : (
                  <VerdictMark verdict={said.verdict} />
                )}
              </span>
              {said !== undefined && said.reason !== '' && <span>{said.reason}</span>}
              {text?.answer != null && <span className={styles.quiet}>{text.answer}</span>}
            </li>
          );
        })}
    </ol>
  );
}
