// Selects the redactions that are reported as pii.match: one in a thousand, chosen by the span, so
// that a process that decides again after a crash chooses the same. In: the spans of an event. Out:
// the events to send. Pure.
import { createHash } from 'node:crypto';
import type { Span } from '../traces/span.ts';

/** One in this many redacted spans is reported. */
const TOLD_ONE_IN = 1000;

export interface PiiMatch {
  event: 'pii.match';
  org_id: string;
  trace_id: string;
  /** The span, which distinguishes this match from others of the trace. */
  subject: string;
  payload: { event: 'pii.match'; org_id: string; trace_id: string; span_id: string; kinds: readonly string[] };
}

export function piiMatches(spans: readonly Span[]): PiiMatch[] {
  return spans.flatMap((span) => {
    const { org_id, trace_id, span_id, event_hex, redacted = [] } = span;
    if (redacted.length === 0 || !isReported(event_hex, span_id)) return [];
    const payload = { event: 'pii.match', org_id, trace_id, span_id, kinds: redacted } as const;
    return [{ event: 'pii.match', org_id, trace_id, subject: `${event_hex} ${span_id}`, payload }];
  });
}

/**
 * Chosen by SHA-256 over the event's hash and the span: evenly spread, and not for a sender to
 * choose.
 */
export function isReported(event_hex: string, span_id: string): boolean {
  return createHash('sha256').update(`${event_hex}\n${span_id}`).digest().readUInt32BE(0) % TOLD_ONE_IN === 0;
}
