// The signals of OTLP, and the paths at which their exports are accepted over HTTP.

export type Signal = 'traces' | 'logs' | 'metrics';

interface SignalNames {
  /** Names of the lists of an export in JSON, from the outermost to the records. */
  lists: readonly [resources: string, scopes: string, records: string];
  /** One record, and several, in messages. */
  record: string;
  records: string;
  /** Name of the number of rejected records in the answer. */
  rejected: 'rejectedSpans' | 'rejectedLogRecords' | 'rejectedDataPoints';
}

export const SIGNALS: Readonly<Record<Signal, SignalNames>> = {
  traces: {
    lists: ['resourceSpans', 'scopeSpans', 'spans'],
    record: 'span',
    records: 'spans',
    rejected: 'rejectedSpans',
  },
  logs: {
    lists: ['resourceLogs', 'scopeLogs', 'logRecords'],
    record: 'log record',
    records: 'log records',
    rejected: 'rejectedLogRecords',
  },
  metrics: {
    lists: ['resourceMetrics', 'scopeMetrics', 'metrics'],
    record: 'data point',
    records: 'data points',
    rejected: 'rejectedDataPoints',
  },
};

/** A path of an export. */
export interface OtlpPath {
  /** The pattern, for metrics. */
  path: string;
  signal: Signal;
}

/**
 * The places below which exporters append v1/traces, v1/logs and v1/metrics; the first is none, the
 * last one is Langfuse's.
 */
const PLACES = ['', '/v1/otlp', '/api/public/otel'];

/** Every path at which exports are accepted, with its signal. */
export const OTLP_PATHS: readonly OtlpPath[] = PLACES.flatMap((place) =>
  (Object.keys(SIGNALS) as Signal[]).map((signal) => ({ path: `${place}/v1/${signal}`, signal })),
);

const OTLP_PATH = /^((?:\/v1\/otlp|\/api\/public\/otel)?\/v1\/(?:traces|logs|metrics))\/?(?:[?#]|$)/;
const BY_PATH: ReadonlyMap<string, OtlpPath> = new Map(OTLP_PATHS.map((known) => [known.path, known]));
/** Methods with which /v1/traces is the list of traces. */
const LISTS = new Set(['GET', 'HEAD']);

/** Returns the OTLP path of a request; null for any other request. */
export function otlpPathOf(method: string, url: string): OtlpPath | null {
  const match = url.startsWith('/v1/') || url.startsWith('/api/public/otel/') ? OTLP_PATH.exec(url) : null;
  const known = BY_PATH.get(match?.[1] ?? '') ?? null;
  return known?.path === '/v1/traces' && LISTS.has(method) ? null : known;
}
