// The tab Messages: the prompt as messages and the answer after them. Texts that are no list of
// messages are shown as input and output.
import { type ReactElement, useEffect, useMemo, useState } from 'react';
import { count } from '../../text/format.ts';
import { CopyButton } from '../../ui/copy_button.tsx';
import { ErrorPanel } from '../../ui/error_panel.tsx';
import { Skeleton } from '../../ui/skeleton.tsx';
import { type Message, readMessages } from '../../trace/text/messages.ts';
import { parseMessages } from '../../trace/text/messages_reader.ts';
import { InputOutputTab } from './io_tab.tsx';
import { MessageView } from './message_view.tsx';
import { TextModes } from './text_section.tsx';
import type { SpanDetail } from './trace_api.ts';
import { gatewayCall } from './gateway_call.ts';
import { loadingWords, NoTexts, useWholeText } from './whole_texts.tsx';
import styles from './span_panel.module.css';

/** More messages than this begin with the last ones. */
const SHOWN_MESSAGES = 60;

/** Reads messages on the main thread where the text is small, else in the worker. */
function useMessages(text: string, isWhole: boolean): Message[] | null | 'loading' {
  const inPlace = useMemo(() => (parseMessages.isSmall(text) ? readMessages(text) : undefined), [text]);
  const [read, setRead] = useState<{ text: string; messages: Message[] | null } | null>(null);
  useEffect(() => {
    if (inPlace !== undefined || !isWhole) return undefined;
    const ending = new AbortController();
    parseMessages(text, ending.signal).then(
      (messages) => {
        setRead({ text, messages });
      },
      () => {
        if (!ending.signal.aborted) setRead({ text, messages: null });
      },
    );
    return () => {
      ending.abort();
    };
  }, [inPlace, text, isWhole]);
  if (!isWhole) return 'loading';
  if (inPlace !== undefined) return inPlace;
  return read?.text === text ? read.messages : 'loading';
}

export function MessagesTab({ traceId, detail }: { traceId: string; detail: SpanDetail }): ReactElement {
  const prompt = useWholeText(traceId, detail, 'prompt');
  const messages = useMessages(prompt.text, prompt.missing !== 'loading');
  if (detail.text_state !== 'here') return <NoTexts traceId={traceId} detail={detail} />;
  if (messages === 'loading')
    return (
      <>
        <p className={styles.quiet}>{loadingWords(detail.chars.prompt)}</p>
        <Skeleton rows={8} />
      </>
    );
  if (messages === null) return <InputOutputTab traceId={traceId} detail={detail} />;
  return (
    <>
      {prompt.missing !== null && prompt.missing !== 'loading' && (
        <ErrorPanel error={prompt.missing.error} what="the whole prompt" onRetry={prompt.missing.retry} />
      )}
      <MessageList messages={messages} detail={detail} traceId={traceId} />
    </>
  );
}

interface ListProps {
  messages: readonly Message[];
  detail: SpanDetail;
  traceId: string;
}

function MessageList({ messages, detail, traceId }: ListProps): ReactElement {
  const [showsAll, setShowsAll] = useState(false);
  const response = useWholeText(traceId, detail, 'response');
  const hidden = showsAll ? 0 : Math.max(0, messages.length - SHOWN_MESSAGES);
  const calls = answerCalls(detail);
  return (
    <>
      <div className={styles.sectionHead}>
        <h3>{messages.length === 1 ? '1 message' : `${count(messages.length)} messages`}</h3>
        <span className={styles.push}>
          <TextModes />
          <CopyButton text={() => JSON.stringify(messages, null, 2)} label="Copy all messages" />
          {detail.model !== '' && (
            <CopyButton
              icon="terminal"
              text={() => gatewayCall(location.origin, detail.model, messages)}
              label="Copy as a call of the gateway"
            />
          )}
        </span>
      </div>
      {hidden > 0 && (
        <button
          type="button"
          className={styles.fold}
          onClick={() => {
            setShowsAll(true);
          }}
        >
          Show {count(hidden)} earlier messages
        </button>
      )}
      {messages.slice(hidden).map((message, index) => (
        <MessageView key={hidden + index} message={message} isFolded={message.role === 'system'} />
      ))}
      <section className={styles.section}>
        <div className={styles.sectionHead}>
          <h3>Answer</h3>
        </div>
        {response.text === '' && calls.length === 0 ? (
          <p className={styles.quiet}>No answer is stored.</p>
        ) : (
          <MessageView
            message={{
              role: 'assistant',
              text: response.text,
              reasoning: null,
              tool_calls: calls,
              tool_call_id: null,
              attachments: [],
            }}
            isFolded={false}
          />
        )}
      </section>
    </>
  );
}

/** Returns the tool calls of the answer, which are kept in the attributes of the span. */
function answerCalls(detail: SpanDetail): Message['tool_calls'] {
  const calls = detail.attributes['tool_calls'];
  if (!Array.isArray(calls)) return [];
  return readMessages(JSON.stringify([{ role: 'assistant', tool_calls: calls }]))?.[0]?.tool_calls ?? [];
}
