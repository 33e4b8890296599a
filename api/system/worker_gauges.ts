// The backlog of one worker, read from the gauges of its own metrics.
const GAUGES = {
  lag_seconds: 'millrace_pipeline_lag_seconds',
  lag_messages: 'millrace_pipeline_lag_messages',
  open_traces: 'millrace_pipeline_open_traces',
  texts_waiting: 'millrace_pipeline_texts_waiting',
} as const;
/** Maximum time for a worker to answer with its metrics. */
const ANSWER_MS_MAX = 500;

export type Backlog = Record<keyof typeof GAUGES, number>;

/** Returns the backlog of the worker; null where its metrics cannot be read. */
export async function readGauges(metrics_url: string, signal: AbortSignal): Promise<Backlog | null> {
  if (metrics_url === '') return null;
  try {
    const answer = await fetch(metrics_url, { signal: AbortSignal.any([signal, AbortSignal.timeout(ANSWER_MS_MAX)]) });
    return answer.ok ? backlogOf(await answer.text()) : null;
  } catch {
    // The worker has just ended, or runs where this process does not reach it.
    return null;
  }
}

/** Returns the backlog in an exposition; a gauge that it does not have counts as 0. */
function backlogOf(exposition: string): Backlog {
  const values = new Map(
    exposition
      .split('\n')
      .filter((line) => line.startsWith('millrace_pipeline_'))
      .map((line) => [line.slice(0, line.search(/[ {]/)), Number(line.slice(line.lastIndexOf(' ') + 1))]),
  );
  const of = (name: keyof Backlog): number => values.get(GAUGES[name]) ?? 0;
  return {
    lag_seconds: of('lag_seconds'),
    lag_messages: of('lag_messages'),
    open_traces: of('open_traces'),
    texts_waiting: of('texts_waiting'),
  };
}
