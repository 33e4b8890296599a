// A span in the shape of the ingest log, as protocols that are translated into OTLP spans make it.

export interface LoggedSpan {
  trace_id: string;
  span_id: string;
  parent_span_id?: string;
  name: string;
  start_time_unix_nano: string;
  end_time_unix_nano: string;
  attributes: Readonly<Record<string, unknown>>;
  events?: readonly unknown[];
  status?: { code: number; message?: string };
}

/** An event of a protocol whose spans come in several parts, as the client sent it. */
export interface PartItem {
  id: string;
  type: string;
  timestamp: string;
  body: Readonly<Record<string, unknown>>;
  /** Milliseconds since the epoch. */
  received_at: number;
}

/** A span made from parts. */
export interface Folded {
  span: LoggedSpan;
  /** When the last of its parts was received, milliseconds since the epoch. */
  received_at: number;
  /** Id by which later parts name what became the span. */
  id: string;
}

/** Returns milliseconds since the epoch as digits of nanoseconds. */
export const nanosOf = (ms: number): string => `${Math.max(1, Math.trunc(ms))}000000`;

/** Returns the text of a span in the ingest log. @param scope instrumentation scope */
export const loggedText = (span: LoggedSpan, scope: string): string =>
  JSON.stringify({ resource: {}, scope: { name: scope }, span });
