// What the list of prompts shows of the last days: calls and score. Rows on the screen are asked for, a
// few at a time.
import { createContext, type ReactElement, type ReactNode, use, useEffect, useMemo, useSyncExternalStore } from 'react';
import { queryClient } from '../../client/query_client.ts';
import { PreviewLoader } from '../../lists/preview_loader.ts';
import { count, percent } from '../../text/format.ts';
import { type Usage, usageQuery } from './prompt_api.ts';

const ROWS_AT_ONCE = 4;
const LoaderContext = createContext<PreviewLoader<Usage> | null>(null);

/** Loads the usage of the prompts below it. */
export function UsageProvider({ org_id, children }: { org_id: string; children: ReactNode }): ReactElement {
  const loader = useMemo(() => {
    const read = async (name: string): Promise<[string, Usage]> => [
      name,
      (await queryClient.query(usageQuery(org_id, name))).data,
    ];
    return new PreviewLoader<Usage>(async (names) => new Map(await Promise.all(names.map(read))), ROWS_AT_ONCE);
  }, [org_id]);
  useEffect(
    () => () => {
      loader.close();
    },
    [loader],
  );
  return <LoaderContext value={loader}>{children}</LoaderContext>;
}

function useUsage(name: string): Usage | undefined {
  const loader = use(LoaderContext);
  const subscribe = useMemo(
    () => (listener: () => void) => loader?.subscribe(name, listener) ?? (() => undefined),
    [loader, name],
  );
  return useSyncExternalStore(subscribe, () => loader?.get(name));
}

type Score = Usage['scores'][number];

/** Returns a score in words: the share of a judge's verdicts that passed, else the mean. */
export function scoreWords({ source, count: scored, mean, passed }: Score): string {
  if (source === 'judge') return `${percent(passed / scored)} pass`;
  return mean === null ? `${count(scored)} given` : mean.toFixed(2);
}

/**
 * The calls of a prompt; empty until they are there.
 * @param unit true where no head of a column says what is counted
 */
export function CallsCell({ name, unit = false }: { name: string; unit?: boolean }): ReactElement {
  const usage = useUsage(name);
  if (usage === undefined) return <span />;
  return <span>{unit ? `${count(usage.calls)} ${usage.calls === 1 ? 'call' : 'calls'}` : count(usage.calls)}</span>;
}

/** The most frequent score of a prompt. */
export function ScoreCell({ name }: { name: string }): ReactElement {
  const usage = useUsage(name);
  const score = usage?.scores[0];
  if (score === undefined) return <span>{usage === undefined ? '' : '–'}</span>;
  return (
    <bdi title={`${score.name} ${scoreWords(score)}: ${count(score.count)} scores`}>
      {scoreWords(score)}, {score.name}
    </bdi>
  );
}
