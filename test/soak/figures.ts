// The figures that a soak run records at every sample: processes, ClickHouse, streams, folders, and
// the service's own metrics.
import { readdirSync, statSync } from 'node:fs';
import path from 'node:path';
import { processTree } from '../bench/processes.ts';
import type { RunSql } from '../bench/store.ts';

/** One part of the service: a process with its descendants. */
export interface ProcessFigures {
  part: string;
  /** Pid of the largest of them; a new pid is a new life. */
  pid: number;
  rss_bytes: number;
  /** NaN where the system does not report it. */
  descriptors: number;
}

/**
 * All figures of one time. NaN marks what could not be read, as of a process that is restarting.
 */
export interface Sample {
  /** Seconds since the load began. */
  at_s: number;
  /** Restarts so far. */
  restarts: number;
  acknowledged: number;
  retries: number;
  ack_p50_ms: number;
  ack_p99_ms: number;
  landed: number;
  processes: ProcessFigures[];
  /** By process label of the metrics. */
  heap_bytes: Record<string, number>;
  event_loop_p99_ms: Record<string, number>;
  lag_seconds: number;
  lag_messages: number;
  texts_waiting: number;
  dedupe_ids: number;
  dedupe_bytes: number;
  stream_bytes: Record<string, number>;
  stream_messages: Record<string, number>;
  /** Active parts by table, and the bytes of all of them. */
  parts: Record<string, number>;
  part_bytes: number;
  /** By folder of the data folder. */
  disk_bytes: Record<string, number>;
}

const METRICS_MS_MAX = 5000;

/** Returns the open descriptors of a process; NaN without /proc, or when the process is gone. */
function descriptorsOf(pid: number): number {
  try {
    return readdirSync(`/proc/${pid}/fd`).length;
  } catch {
    return NaN;
  }
}

export function processFigures(root: number): ProcessFigures[] {
  const byPart = Map.groupBy(processTree(root), ({ part }) => part);
  return [...byPart].map(([part, processes]) => ({
    part,
    pid: processes.reduce((largest, one) => (one.rss_bytes > largest.rss_bytes ? one : largest)).pid,
    rss_bytes: processes.reduce((sum, { rss_bytes }) => sum + rss_bytes, 0),
    descriptors: processes.reduce((sum, { pid }) => sum + descriptorsOf(pid), 0),
  }));
}

/** Returns the bytes on disk below a folder. Files that vanish meanwhile do not count. */
export function bytesBelow(folder: string): number {
  let bytes = 0;
  const waiting = [folder];
  for (let at = waiting.pop(); at !== undefined; at = waiting.pop()) {
    try {
      for (const entry of readdirSync(at, { withFileTypes: true })) {
        const where = path.join(at, entry.name);
        if (entry.isDirectory()) waiting.push(where);
        else if (entry.isFile()) bytes += statSync(where).blocks * 512;
      }
    } catch {
      // The file was merged away or purged.
    }
  }
  return bytes;
}

const LINE = /^(\w+)(?:\{(.*)\})? (\S+)/;

/** Yields the samples of a Prometheus text with their labels. */
export function* metricSamples(
  text: string,
): Generator<{ name: string; labels: Record<string, string>; value: number }> {
  for (const line of text.split('\n')) {
    const match = LINE.exec(line);
    if (match === null) continue;
    const [, name = '', pairs = '', value = ''] = match;
    yield {
      name,
      labels: Object.fromEntries(
        [...pairs.matchAll(/(\w+)="([^"]*)"/g)].map(([, label = '', text_ = '']) => [label, text_]),
      ),
      value: Number(value),
    };
  }
}

interface ServiceFigures {
  heap_bytes: Record<string, number>;
  event_loop_p99_ms: Record<string, number>;
  stream_bytes: Record<string, number>;
  stream_messages: Record<string, number>;
  lag_seconds: number;
  lag_messages: number;
  dedupe_ids: number;
  dedupe_bytes: number;
}

/** Returns the service's own metrics; names without a sample stay NaN. */
export function serviceFigures(text: string): ServiceFigures {
  const figures: ServiceFigures = {
    heap_bytes: {},
    event_loop_p99_ms: {},
    stream_bytes: {},
    stream_messages: {},
    lag_seconds: NaN,
    lag_messages: NaN,
    dedupe_ids: NaN,
    dedupe_bytes: NaN,
  };
  const most = (before: number, value: number): number => (Number.isNaN(before) ? value : Math.max(before, value));
  for (const { name, labels, value } of metricSamples(text)) {
    const process = labels['process'] ?? '';
    const stream = labels['stream'] ?? '';
    if (name === 'nodejs_heap_size_used_bytes') figures.heap_bytes[process] = value;
    if (name === 'nodejs_eventloop_lag_p99_seconds') figures.event_loop_p99_ms[process] = value * 1000;
    if (name === 'millrace_stream_bytes') figures.stream_bytes[stream] = value;
    if (name === 'millrace_stream_messages') figures.stream_messages[stream] = value;
    if (name === 'millrace_pipeline_lag_seconds') figures.lag_seconds = most(figures.lag_seconds, value);
    if (name === 'millrace_pipeline_lag_messages') figures.lag_messages = most(figures.lag_messages, value);
    if (name === 'millrace_pipeline_dedupe_ids') figures.dedupe_ids = most(figures.dedupe_ids, value);
    if (name === 'millrace_pipeline_dedupe_bytes') figures.dedupe_bytes = most(figures.dedupe_bytes, value);
  }
  return figures;
}

export async function readService(url: string): Promise<ServiceFigures> {
  try {
    const answer = await fetch(`${url}/metrics`, { signal: AbortSignal.timeout(METRICS_MS_MAX) });
    return serviceFigures(await answer.text());
  } catch {
    return serviceFigures('');
  }
}

interface StoreFigures {
  landed: number;
  texts_waiting: number;
  parts: Record<string, number>;
  part_bytes: number;
}

export async function readStore(runSql: RunSql): Promise<StoreFigures> {
  try {
    const [counts = '', ...tables] = (
      await runSql(`SELECT toString((SELECT count() FROM spans)), toString((SELECT count() FROM span_texts_recent)), '' UNION ALL
        SELECT table, toString(count()), toString(sum(bytes_on_disk)) FROM system.parts WHERE active AND database = currentDatabase() GROUP BY table FORMAT TSV`)
    )
      .split('\n')
      .sort((a, b) => Number(b.endsWith('\t')) - Number(a.endsWith('\t')));
    const [landed, texts_waiting] = counts.split('\t').map(Number);
    const rows = tables.filter((line) => line !== '').map((line) => line.split('\t'));
    return {
      landed: landed ?? NaN,
      texts_waiting: texts_waiting ?? NaN,
      parts: Object.fromEntries(rows.map(([table = '', count = '']) => [table, Number(count)])),
      part_bytes: rows.reduce((sum, [, , bytes = '']) => sum + Number(bytes), 0),
    };
  } catch {
    return { landed: NaN, texts_waiting: NaN, parts: {}, part_bytes: NaN };
  }
}

/** Returns the bytes of each folder of the data folder. */
export const diskFigures = (dataDir: string): Record<string, number> =>
  Object.fromEntries(
    readdirSync(dataDir, { withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .map(({ name }) => [name, bytesBelow(path.join(dataDir, name))]),
  );
