// One text of a span with its heading, the choice of how it is shown, and copy. The choice is the
// person's and holds for all texts: as text (exact), rendered Markdown, or JSON.
import { type ReactElement, type ReactNode, useSyncExternalStore } from 'react';
import { count } from '../../text/format.ts';
import { CopyButton } from '../../ui/copy_button.tsx';
import { deferred } from '../../ui/deferred.tsx';
import { Skeleton } from '../../ui/skeleton.tsx';
import { JsonViewer } from '../../trace/json/json_viewer.tsx';
import { useTrace } from '../../trace/store.ts';
import { isRenderable } from '../../trace/text/renderable.ts';
import { TextView } from '../../trace/text/text_view.tsx';
import styles from './span_panel.module.css';

const Markdown = deferred(
  () => import('../../trace/text/markdown.tsx'),
  () => <Skeleton rows={3} />,
);

const MODES = ['text', 'rendered', 'json'] as const;
type Mode = (typeof MODES)[number];
const WORDS: Record<Mode, string> = { text: 'Text', rendered: 'Rendered', json: 'JSON' };
const KEY = 'millrace.text_mode';

const listeners = new Set<() => void>();
let chosen: Mode = readMode();

function readMode(): Mode {
  try {
    return MODES.find((mode) => mode === localStorage.getItem(KEY)) ?? 'text';
  } catch {
    return 'text';
  }
}

function choose(mode: Mode): void {
  chosen = mode;
  try {
    localStorage.setItem(KEY, mode);
  } catch {
    // The choice holds for this page.
  }
  for (const listener of listeners) listener();
}

const subscribe = (listener: () => void): (() => void) => {
  listeners.add(listener);
  return () => listeners.delete(listener);
};

const useMode = (): Mode => useSyncExternalStore(subscribe, () => chosen);

/** Returns whether a text looks like JSON of an object or a list, without parsing it. */
export function looksLikeJson(text: string): boolean {
  const trimmed = text.length < 1_000_000 ? text.trim() : text;
  const ends = trimmed.charAt(0) + trimmed.charAt(trimmed.length - 1);
  return ends === '{}' || ends === '[]';
}

/** A text in the mode that the person chose; JSON only where the text is JSON. */
export function ShownText({ text, label }: { text: string; label: string }): ReactElement {
  const mode = useMode();
  const find = useTrace((snapshot) => snapshot.find);
  if (mode === 'json' && looksLikeJson(text)) return <JsonViewer given={{ text }} label={label} />;
  if (mode === 'rendered' && isRenderable(text)) return <Markdown text={text} />;
  return <TextView text={text} label={label} find={find} />;
}

/** The choice of how texts are shown. */
export function TextModes(): ReactElement {
  const mode = useMode();
  return (
    <span className={styles.modes} role="group" aria-label="Show texts as">
      {MODES.map((one) => (
        <button
          key={one}
          type="button"
          aria-pressed={one === mode}
          onClick={() => {
            choose(one);
          }}
        >
          {WORDS[one]}
        </button>
      ))}
    </span>
  );
}

interface TextSectionProps {
  title: string;
  text: string;
  /** Length of the whole text where only its beginning is here. */
  chars?: number;
  children?: ReactNode;
}

export function TextSection({ title, text, chars = text.length, children }: TextSectionProps): ReactElement {
  return (
    <section className={styles.section}>
      <div className={styles.sectionHead}>
        <h3>{title}</h3>
        <span className={styles.quiet}>{count(chars)} characters</span>
        <span className={styles.push}>
          <TextModes />
          <CopyButton text={text} label={`Copy ${title.toLowerCase()}`} />
        </span>
      </div>
      {children ?? <ShownText text={text} label={title} />}
    </section>
  );
}
