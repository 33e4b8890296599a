// One message: its role, text, thinking, tool calls and attachments. Thinking is folded, and so are
// system messages.
import { type ReactElement, useState } from 'react';
import { count } from '../../text/format.ts';
import { CopyButton } from '../../ui/copy_button.tsx';
import { KindMark } from '../../ui/marks.tsx';
import { Name, shownName } from '../../trace/name.tsx';
import { ImageLink } from '../../trace/text/image_link.tsx';
import type { Message } from '../../trace/text/messages.ts';
import { oneLine, preview } from '../../trace/text/one_line.ts';
import { ShownText } from './text_section.tsx';
import styles from './span_panel.module.css';

/** Folded texts above this length show only their beginning. */
const FOLDED_CHARS = 160;

interface MessageViewProps {
  message: Message;
  isFolded: boolean;
}

export function MessageView({ message, isFolded }: MessageViewProps): ReactElement {
  const { role, text, reasoning, tool_calls, tool_call_id, attachments } = message;
  return (
    <article className={styles.message} data-role={role}>
      <div className={styles.role}>
        <Name>{role}</Name>
        {tool_call_id !== null && (
          <code className={styles.quiet}>
            <Name>{tool_call_id}</Name>
          </code>
        )}
        <span className={styles.push}>
          <CopyButton text={text} label={`Copy ${oneLine(role)} message`} />
        </span>
      </div>
      {reasoning !== null && <Reasoning text={reasoning} />}
      {text !== '' && <Foldable text={text} label={role} isFolded={isFolded && text.length > FOLDED_CHARS} />}
      {tool_calls.map((call, index) => (
        <div key={call.id ?? index} className={styles.call}>
          <span className={styles.callName}>
            <KindMark kind="tool" silent />
            <Name>{shownName(call.name)}</Name>
            {call.id !== null && (
              <code className={styles.quiet}>
                <Name>{call.id}</Name>
              </code>
            )}
          </span>
          {call.arguments !== '' && <ShownText text={call.arguments} label={`Arguments of ${call.name}`} />}
        </div>
      ))}
      {attachments.map(({ type, url }, index) => (
        <p key={index}>{url === null ? `[${type}]` : <ImageLink url={url} alt={type} />}</p>
      ))}
    </article>
  );
}

/** A text that begins with one line and opens to all of it. */
export function Foldable({ text, label, isFolded }: { text: string; label: string; isFolded: boolean }): ReactElement {
  const [isOpen, setOpen] = useState(!isFolded);
  if (!isFolded) return <ShownText text={text} label={label} />;
  return (
    <>
      <button
        type="button"
        className={styles.fold}
        aria-expanded={isOpen}
        onClick={() => {
          setOpen(!isOpen);
        }}
      >
        {isOpen ? 'Show less' : `Show all ${count(text.length)} characters`}
      </button>
      {isOpen ? (
        <ShownText text={text} label={label} />
      ) : (
        <p className={styles.quiet}>
          <bdi>{preview(text, FOLDED_CHARS)}</bdi>
        </p>
      )}
    </>
  );
}

function Reasoning({ text }: { text: string }): ReactElement {
  const [isOpen, setOpen] = useState(false);
  return (
    <>
      <button
        type="button"
        className={styles.fold}
        aria-expanded={isOpen}
        onClick={() => {
          setOpen(!isOpen);
        }}
      >
        {isOpen ? 'Hide thinking' : `Show thinking, ${count(text.length)} characters`}
      </button>
      {isOpen && (
        <div className={styles.reasoning}>
          <ShownText text={text} label="Thinking" />
        </div>
      )}
    </>
  );
}
