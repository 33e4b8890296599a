// Cells of the table that need texts, models and verdicts: they ask for them when they come into view,
// so only the rows on the screen are read from the store.
import { createContext, type ReactElement, type ReactNode, use, useEffect, useMemo, useSyncExternalStore } from 'react';
import { VerdictDots, verdictWords } from '../../lists/marks.tsx';
import { PreviewLoader } from '../../lists/preview_loader.ts';
import { PREVIEWS_MAX } from '../../lists/preview_requests.ts';
import { fetchPreviews, type Preview } from '../../lists/previews.ts';
import { NONE } from '../../text/format.ts';
import styles from './trace_columns.module.css';

const LoaderContext = createContext<PreviewLoader<Preview> | null>(null);

/** Loads previews for the cells below it. */
export function PreviewProvider({ org_id, children }: { org_id: string; children: ReactNode }): ReactElement {
  const loader = useMemo(
    () => new PreviewLoader<Preview>((trace_ids, signal) => fetchPreviews(org_id, trace_ids, signal), PREVIEWS_MAX),
    [org_id],
  );
  useEffect(
    () => () => {
      loader.close();
    },
    [loader],
  );
  return <LoaderContext value={loader}>{children}</LoaderContext>;
}

/** Returns the preview of a trace, which is asked for when the component appears; undefined until it is there. */
export function usePreview(trace_id: string): Preview | undefined {
  const loader = use(LoaderContext);
  const subscribe = useMemo(
    () => (listener: () => void) => loader?.subscribe(trace_id, listener) ?? (() => undefined),
    [loader, trace_id],
  );
  return useSyncExternalStore(subscribe, () => loader?.get(trace_id));
}

/** The verdicts of judges as signs. */
export function PreviewVerdicts({ trace_id }: { trace_id: string }): ReactElement | null {
  const verdicts = usePreview(trace_id)?.verdicts ?? [];
  return verdicts.length === 0 ? null : <VerdictDots verdicts={verdicts} />;
}

/** The verdicts of judges in words, worst first. */
export function PreviewVerdictWords({ trace_id }: { trace_id: string }): ReactElement {
  const verdicts = usePreview(trace_id)?.verdicts ?? [];
  return verdicts.length === 0 ? <span className={styles.none}>{NONE}</span> : <span>{verdictWords(verdicts)}</span>;
}

/** The models that a trace called. */
export function PreviewModels({ trace_id }: { trace_id: string }): ReactElement | null {
  const preview = usePreview(trace_id);
  return preview === undefined ? null : <Line text={preview.models.join(', ')} />;
}

/** One of the texts of a trace. */
export function PreviewText({
  trace_id,
  part,
}: {
  trace_id: string;
  part: 'first_text' | 'answer' | 'first_error';
}): ReactElement | null {
  const preview = usePreview(trace_id);
  return preview === undefined ? null : <Line text={preview[part] ?? ''} />;
}

function Line({ text }: { text: string }): ReactElement {
  return text === '' ? (
    <span className={styles.none}>{NONE}</span>
  ) : (
    <span className={styles.text} title={text}>
      {text}
    </span>
  );
}
