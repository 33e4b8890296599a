// The scores of an eval, read as they stream. Rows appear at most ten times a second.
import { useEffect, useState } from 'react';
import { readScores, type ScoreLine } from './score_stream.ts';

const SHOWN_MS = 100;

interface Scores {
  lines: readonly ScoreLine[];
  state: 'reading' | 'done' | 'cut';
  error: unknown;
}

const NONE: Scores = { lines: [], state: 'reading', error: null };

/**
 * Returns the scores so far.
 * @param renewed the scores are read again when it changes
 */
export function useScores(org_id: string, eval_id: string, query: string, renewed: string): Scores {
  const key = `${org_id} ${eval_id} ${query}`;
  const [held, setHeld] = useState<{ key: string; scores: Scores }>({ key, scores: NONE });
  useEffect(() => {
    const end = new AbortController();
    const lines: ScoreLine[] = [];
    let timer: number | null = null;
    const show = (state: Scores['state'], error: unknown = null): void => {
      if (timer !== null) clearTimeout(timer);
      timer = null;
      setHeld({ key, scores: { lines: lines.slice(), state, error } });
    };
    const onLines = (more: ScoreLine[]): void => {
      lines.push(...more);
      timer ??= window.setTimeout(() => {
        show('reading');
      }, SHOWN_MS);
    };
    readScores(org_id, { eval_id, query }, onLines, end.signal).then(
      (cut) => {
        if (!end.signal.aborted) show(cut ? 'cut' : 'done');
      },
      (error: unknown) => {
        if (!end.signal.aborted) show('done', error);
      },
    );
    return () => {
      end.abort();
      if (timer !== null) clearTimeout(timer);
    };
  }, [org_id, eval_id, query, renewed, key]);
  return held.key === key ? held.scores : NONE;
}
