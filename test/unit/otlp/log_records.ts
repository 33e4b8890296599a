// Log records as the decoder gives them, made by hand or recorded from real coding agents
// (test/data/coding_agents.json).
import { readFileSync } from 'node:fs';
import { spansOf } from '../../../pipeline/domain/decode/decode.ts';
import { otlpLogEvent } from '../../../pipeline/domain/decode/otlp_log_event.ts';
import { eventHex } from '../../../pipeline/domain/traces/ids.ts';
import type { Span } from '../../../pipeline/domain/traces/span.ts';
import { type Fields, prices } from './decoding.ts';

interface RecordedAgent {
  resource: Fields;
  scope: string;
  logs: Fields[];
  spans?: Fields[];
  span_scope?: string;
}

export const AGENTS = JSON.parse(
  readFileSync(new URL('../../data/coding_agents.json', import.meta.url), 'utf8'),
) as Record<string, RecordedAgent>;

/** When the recorded agents ran. */
const RECORDED_AT = Date.parse('2026-11-23T22:00:00.000Z');

/** Decodes one log record, or returns why it is rejected. */
export function logSpan(log: Fields, resource: Fields = {}, scope = 'test'): Span | string {
  const checked = otlpLogEvent(log, resource, RECORDED_AT);
  if (!checked.ok) return `${checked.path}: ${checked.message}`;
  const body = JSON.stringify({ resource: { attributes: resource }, scope: { name: scope }, log });
  const raw = {
    org_id: 'org_a',
    format: 'otlp' as const,
    event_hex: eventHex(body),
    trace_id: checked.event.trace_id,
    received_at: RECORDED_AT,
    body,
  };
  const spans = spansOf({ prices, maxPromptTokens: () => null, redactorOf: () => null }, raw, JSON.parse(body));
  return typeof spans === 'string' ? spans : (spans[0] ?? 'no span');
}

/** Decodes the log records of a recorded agent. */
export function spansOfAgent(name: string): Span[] {
  const { resource, scope, logs } = AGENTS[name] ?? { resource: {}, scope: '', logs: [] };
  return logs.map((log) => {
    const span = logSpan(log, resource, scope);
    if (typeof span === 'string') throw new Error(span);
    return span;
  });
}
