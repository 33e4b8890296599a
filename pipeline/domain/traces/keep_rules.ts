// Sampling rules: what every profile keeps, and the share of the rest. In: spans of one event, a
// trace id. Out: the rule that applies, or the decision by rate. Pure: every worker makes the same
// decision about a trace at any time.
import { namedKindOf, type NamedKind, OTHER_EVENT_TYPE } from '../decode/kinds.ts';
import type { Span } from './span.ts';

export type SamplingProfile = 'full' | 'balanced' | 'aggressive';
export type KeepRule = 'error' | 'force_trace' | 'slow' | NamedKind;

/** Share of the events kept that no rule keeps. */
export const PROFILE_RATE: Readonly<Record<SamplingProfile, number>> = { full: 1, balanced: 0.15, aggressive: 0.05 };

/**
 * Returns the rule that keeps these spans whatever the rate, or null. A span is slow when it takes
 * longer than `slowMs`.
 */
export function keepRule(spans: readonly Span[], slowMs: number): KeepRule | null {
  for (const span of spans) {
    const rule = ruleOf(span, slowMs);
    if (rule !== null) return rule;
  }
  return null;
}

function ruleOf(span: Span, slowMs: number): KeepRule | null {
  if (span.outcome !== 'success') return 'error';
  const { attributes } = span;
  if (forcesTrace(span)) return 'force_trace';
  const named = namedKindOf(span.name);
  if (named !== null) return named;
  for (const eventType of [attributes['event_type'], attributes[OTHER_EVENT_TYPE]]) {
    const typed = typeof eventType === 'string' ? namedKindOf(eventType) : null;
    if (typed !== null) return typed;
  }
  // The sender's own measurement counts where the times say otherwise.
  const measured = attributes['duration_ms'];
  const duration = Math.max(span.ended_at - span.started_at, typeof measured === 'number' ? measured : 0);
  return duration > slowMs ? 'slow' : null;
}

/** Returns true when a span forces its whole trace to be kept. */
export function forcesTrace({ attributes }: Pick<Span, 'attributes'>): boolean {
  const forced = attributes['force_trace'];
  return forced === true || forced === 'true';
}

/**
 * Returns true when the rate keeps a trace. All its events get one answer, and a higher rate keeps
 * all that a lower one keeps.
 */
export function keptByRate(traceId: string, rate: number): boolean {
  return rate >= 1 || traceFraction(traceId) < rate;
}

/**
 * Returns a number in [0, 1), evenly spread over trace ids: FNV-1a finished by MurmurHash3's
 * mixing, which evens out FNV's bias.
 */
function traceFraction(traceId: string): number {
  let h = 0x811c9dc5;
  for (let i = 0; i < traceId.length; i++) h = Math.imul(h ^ traceId.charCodeAt(i), 0x01000193);
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b);
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35);
  return ((h ^ (h >>> 16)) >>> 0) / 0x1_0000_0000;
}
