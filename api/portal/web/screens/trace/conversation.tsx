// The conversation of a trace: its model calls as one dialogue without repeats. Each call shows the
// messages that are new against the call that it continues, and how its context grew.
import { useInfiniteQuery } from '@tanstack/react-query';
import { type ReactElement, useState } from 'react';
import { useOrganization } from '../../client/session.ts';
import { compact, count, duration, money, tokenFlow } from '../../text/format.ts';
import { Button } from '../../ui/button.tsx';
import { EmptyState } from '../../ui/empty_state.tsx';
import { ErrorPanel } from '../../ui/error_panel.tsx';
import { KindMark, OutcomeMark } from '../../ui/marks.tsx';
import { Skeleton } from '../../ui/skeleton.tsx';
import { Name, shownName } from '../../trace/name.tsx';
import { spanOfRow, useTrace, useTraceStore } from '../../trace/store.ts';
import { Foldable, MessageView } from './message_view.tsx';
import { conversationQuery, type Step } from './trace_api.ts';
import styles from './conversation.module.css';

/** Results of tools above this length are folded. */
const RESULT_CHARS = 600;

interface ConversationProps {
  traceId: string;
  /** False: the calls are only read, as there is no panel that would show their spans. */
  selects?: boolean;
}

export function Conversation({ traceId, selects = true }: ConversationProps): ReactElement {
  const { org_id } = useOrganization();
  const query = useInfiniteQuery(conversationQuery(org_id, traceId));
  if (query.data === undefined)
    return query.isError ? (
      <ErrorPanel error={query.error} what="the conversation" onRetry={() => void query.refetch()} />
    ) : (
      <Skeleton rows={10} height={16} />
    );
  const steps = query.data.pages.flatMap(({ data }) => data.steps);
  const total = query.data.pages[0]?.meta.total ?? steps.length;
  if (steps.length === 0)
    return (
      <EmptyState title="No model calls">
        The conversation is made of the model calls of a trace. The waterfall shows its other spans.
      </EmptyState>
    );
  const largest = steps.reduce((most, { context }) => Math.max(most, context.chars), 1);
  return (
    <div className={styles.conversation} tabIndex={0} role="region" aria-label="Conversation">
      {steps.map((step, at) => (
        <StepView key={`${step.span_id} ${at}`} step={step} largest={largest} selects={selects} />
      ))}
      {query.hasNextPage && (
        <p className={styles.more}>
          <Button busy={query.isFetchingNextPage} onClick={() => void query.fetchNextPage()}>
            Show more calls, {count(steps.length)} of {count(total)} are shown
          </Button>
        </p>
      )}
    </div>
  );
}

interface StepProps {
  step: Step;
  largest: number;
  selects: boolean;
}

function StepView({ step, largest, selects }: StepProps): ReactElement {
  const { added, answer, error, text_state } = step;
  return (
    <section className={styles.step} aria-label={`Model call ${step.model}`}>
      <StepHead step={step} largest={largest} selects={selects} />
      {text_state !== 'here' && <p className={styles.quiet}>The texts of this call are not stored.</p>}
      {added
        .filter(({ repeats }) => repeats === null)
        .map((message) => (
          <MessageView
            key={message.index}
            message={{ ...message, tool_calls: message.tool_calls }}
            isFolded={message.role === 'system' || (message.role === 'tool' && message.text.length > RESULT_CHARS)}
          />
        ))}
      {answer !== null && <Answer answer={answer} selects={selects} />}
      {error !== null && (
        <p className={styles.error} dir="auto">
          {error}
        </p>
      )}
    </section>
  );
}

function StepHead({ step, largest, selects }: StepProps): ReactElement {
  const store = useTraceStore();
  const span = useTrace(({ model }) => model.tree.indexOf.get(step.span_id) ?? -1);
  const isSelected = useTrace(({ model, focusRow }) => spanOfRow(model, focusRow) === span);
  const [showsChange, setShowsChange] = useState(false);
  const { kept, added, changed, dropped, context, outcome } = step;
  const hasChange = changed.length + dropped.length > 0;
  const words = [
    step.base_span_id === null ? '' : `${count(kept)} kept`,
    added.length === 0 ? '' : `+${count(added.length)} ${added.length === 1 ? 'message' : 'messages'}`,
    changed.length === 0 ? '' : `${count(changed.length)} changed`,
    dropped.length === 0 ? '' : `${count(dropped.length)} dropped`,
  ].filter((word) => word !== '');
  return (
    <>
      <header className={styles.head} data-selected={selects && isSelected}>
        <button
          type="button"
          className={styles.call}
          title={selects ? 'Select the span of this call' : undefined}
          disabled={!selects}
          onClick={() => {
            store.reveal(span);
          }}
        >
          <KindMark kind="llm" />
          <Name>{shownName(step.model === '' ? step.name : step.model)}</Name>
          {outcome !== 'success' && <OutcomeMark outcome={outcome} />}
        </button>
        <span className={styles.quiet}>
          {duration(step.duration_ms)} · {tokenFlow(step.input_tokens, step.output_tokens)} tokens ·{' '}
          {money(step.cost_usd)}
        </span>
        <span
          className={styles.context}
          title={`Context: ${count(context.messages)} messages, ${count(context.chars)} characters`}
        >
          <span className={styles.contextBar} aria-hidden="true">
            <span style={{ width: `${(context.chars / largest) * 100}%` }} />
          </span>
          <span className={styles.quiet}>
            {compact(context.chars)} characters{words.length > 0 ? `, ${words.join(', ')}` : ''}
          </span>
          {hasChange && (
            <Button
              look="quiet"
              aria-expanded={showsChange}
              hint="Show the messages that changed or were dropped"
              onClick={() => {
                setShowsChange(!showsChange);
              }}
            >
              Δ
            </Button>
          )}
        </span>
      </header>
      {showsChange && <Change step={step} />}
    </>
  );
}

function Change({ step: { changed, dropped } }: { step: Step }): ReactElement {
  return (
    <div className={styles.change}>
      {changed.map(({ before, after }) => (
        <div key={after.index} className={styles.pair}>
          <div>
            <p className={styles.quiet}>Before</p>
            <MessageView message={before} isFolded={false} />
          </div>
          <div>
            <p className={styles.quiet}>After</p>
            <MessageView message={after} isFolded={false} />
          </div>
        </div>
      ))}
      {dropped.map((message) => (
        <div key={message.index}>
          <p className={styles.quiet}>Dropped</p>
          <MessageView message={message} isFolded />
        </div>
      ))}
    </div>
  );
}

interface AnswerProps {
  answer: NonNullable<Step['answer']>;
  selects: boolean;
}

function Answer({ answer, selects }: AnswerProps): ReactElement {
  const store = useTraceStore();
  const { tree } = useTrace((snapshot) => snapshot.model);
  const { text, reasoning, tool_calls } = answer;
  return (
    <>
      <MessageView
        message={{ role: 'assistant', text, reasoning, tool_calls, tool_call_id: null, attachments: [] }}
        isFolded={false}
      />
      {tool_calls
        .filter(({ result }) => result !== null)
        .map(({ id, name, result, result_chars, span_id, outcome }, at) => (
          <article key={id ?? at} className={styles.result} data-failed={outcome !== null && outcome !== 'success'}>
            <p className={styles.resultHead}>
              <KindMark kind="tool" />
              <Name>{shownName(name)}</Name>
              <span className={styles.quiet}>returned {count(result_chars)} characters</span>
              {outcome !== null && outcome !== 'success' && <OutcomeMark outcome={outcome} />}
              {selects && span_id !== null && (
                <Button
                  look="quiet"
                  onClick={() => {
                    store.reveal(tree.indexOf.get(span_id) ?? -1);
                  }}
                >
                  Select span
                </Button>
              )}
            </p>
            <Foldable text={result ?? ''} label={`Result of ${name}`} isFolded={result_chars > RESULT_CHARS} />
          </article>
        ))}
    </>
  );
}
