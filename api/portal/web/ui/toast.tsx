// Short messages about what was done, with an action such as Undo. They are announced politely and
// stay while the pointer or the focus is on them.
import { type ReactElement, useEffect, useState, useSyncExternalStore } from 'react';
import { Link } from 'wouter';
import { Button } from './button.tsx';
import { cx } from './cx.ts';
import styles from './toast.module.css';

const SHOWN_MAX = 3;
const STAYS_MS = 8000;

interface Toast {
  text: string;
  tone?: 'plain' | 'error';
  /** A button, for example Undo. */
  action?: { label: string; run: () => void };
  /** A link, for example to the line of the audit log. */
  link?: { label: string; href: string };
}

type Shown = Toast & { id: number };
const listeners = new Set<() => void>();
let shown: readonly Shown[] = [];
let last = 0;

function setShown(next: readonly Shown[]): void {
  shown = next;
  for (const listener of listeners) listener();
}

/** Shows a message; the oldest goes when there are more than three. */
export function toast(message: Toast): void {
  last += 1;
  setShown([...shown, { ...message, id: last }].slice(-SHOWN_MAX));
}

const remove = (id: number): void => {
  setShown(shown.filter((one) => one.id !== id));
};

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** The place where messages appear; rendered once by the frame. */
export function Toasts(): ReactElement {
  const messages = useSyncExternalStore(subscribe, () => shown);
  return (
    <div className={styles.region} role="status" aria-label="Messages">
      {messages.map((message) => (
        <Message key={message.id} message={message} />
      ))}
    </div>
  );
}

function Message({ message }: { message: Shown }): ReactElement {
  const { id, text, tone = 'plain', action, link } = message;
  const [paused, setPaused] = useState(false);
  useEffect(() => {
    if (paused) return undefined;
    const timer = setTimeout(() => {
      remove(id);
    }, STAYS_MS);
    return () => {
      clearTimeout(timer);
    };
  }, [id, paused]);
  const pause = (): void => {
    setPaused(true);
  };
  const resume = (): void => {
    setPaused(false);
  };
  return (
    <div
      className={cx(styles.toast, styles[tone])}
      onPointerEnter={pause}
      onPointerLeave={resume}
      onFocus={pause}
      onBlur={resume}
    >
      <span className={styles.text}>{text}</span>
      {link !== undefined && <Link href={link.href}>{link.label}</Link>}
      {action !== undefined && (
        <Button
          look="quiet"
          onClick={() => {
            remove(id);
            action.run();
          }}
        >
          {action.label}
        </Button>
      )}
      <Button
        look="quiet"
        icon="x"
        hint="Dismiss message"
        onClick={() => {
          remove(id);
        }}
      />
    </div>
  );
}
