// The glyphs of span kinds and outcomes. Shapes differ as well as colours, since no five colours are
// distinct for every eye. Failures stand out, successes do not.
import type { ReactElement } from 'react';
import styles from './marks.module.css';
import { cx } from './cx.ts';

export type SpanKind = 'llm' | 'tool' | 'event' | 'app' | 'judge';
export type Outcome = 'success' | 'error' | 'timeout';

/** Outlines on a square of 12. */
const KIND_SHAPES: Readonly<Record<SpanKind, string>> = {
  llm: 'M6 0.5 11.5 6 6 11.5 0.5 6z',
  tool: 'M1.5 1.5h9v9h-9z',
  event: 'M6 1.5a4.5 4.5 0 1 0 0 9a4.5 4.5 0 1 0 0-9z',
  app: 'M6 1 11.5 10.5h-11z',
  judge: 'M6 0.5 11.5 4.6 9.4 11h-6.8L0.5 4.6z',
};
const KIND_NAMES: Readonly<Record<SpanKind, string>> = {
  llm: 'Model call',
  tool: 'Tool call',
  event: 'Event',
  app: 'App span',
  judge: 'Judge call',
};
const OUTCOME_SHAPES: Readonly<Record<Outcome, string>> = {
  success: 'M6 4.25a1.75 1.75 0 1 0 0 3.5a1.75 1.75 0 1 0 0-3.5z',
  error: 'M6 1 11.5 10.5h-11z',
  timeout: 'M6 0.75a5.25 5.25 0 1 0 0 10.5a5.25 5.25 0 1 0 0-10.5zM5.25 2.75h1.5v3l2.1 2.1-1.05 1.05-2.55-2.55z',
};

function Glyph({ path, name, look }: { path: string; name: string | null; look: string | undefined }): ReactElement {
  return (
    <svg
      width={12}
      height={12}
      viewBox="0 0 12 12"
      fillRule="evenodd"
      className={cx(styles.mark, look)}
      {...(name === null ? { 'aria-hidden': true } : { role: 'img', 'aria-label': name })}
    >
      {name !== null && <title>{name}</title>}
      <path d={path} />
    </svg>
  );
}

/** The glyph of a span's kind. `silent`: its name stands beside it in words. */
export function KindMark({ kind, silent = false }: { kind: SpanKind; silent?: boolean }): ReactElement {
  return <Glyph path={KIND_SHAPES[kind]} name={silent ? null : KIND_NAMES[kind]} look={styles[kind]} />;
}

/** The glyph of an outcome. */
export function OutcomeMark({ outcome, silent = false }: { outcome: Outcome; silent?: boolean }): ReactElement {
  return <Glyph path={OUTCOME_SHAPES[outcome]} name={silent ? null : outcome} look={styles[outcome]} />;
}
