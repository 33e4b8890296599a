// Classifies events: the span kind of a custom event, and the named kind of an event in the
// sampling rules. In: words as senders write them, in any case, with any of - _ or a space. Out:
// members of closed sets.
import type { SpanKind } from '../traces/span.ts';

/** Kinds of events that every sampling profile keeps. */
export type NamedKind = 'loop' | 'tool_error' | 'stumble' | 'judge' | 'stat_gate' | 'mcp_auth';

/**
 * Attribute that holds a custom event's event_type when its attributes contain another event_type.
 */
export const OTHER_EVENT_TYPE = 'event.event_type';

const NAMED = /(?:^|[^a-z0-9])(loop|tool[-_ ]error|stumble|judge|stat[-_ ]gate|mcp[-_ ]auth)(?![a-z0-9])/i;
/** Cheap pre-test that rejects most names: every named kind contains one of these. */
const MAYBE_NAMED = /loop|tool.error|stumble|judge|stat.gate|mcp.auth/i;

/**
 * Returns the named kind that a name or event type contains as a word of its own (`agent.loop`,
 * `MCP-Auth failed`), or null.
 */
export function namedKindOf(text: string): NamedKind | null {
  if (!MAYBE_NAMED.test(text)) return null;
  const found = NAMED.exec(text)?.[1];
  return found === undefined ? null : (found.toLowerCase().replace(/[- ]/, '_') as NamedKind);
}

const LLM = new Set([
  'llm',
  'generation',
  'chat',
  'completion',
  'chat_completion',
  'text_completion',
  'llm_call',
  'model_call',
]);
const TOOL = new Set([
  'tool',
  'tool_call',
  'tool_use',
  'tool_result',
  'tool_error',
  'tool_execution',
  'execute_tool',
  'function_call',
]);

/**
 * Returns the text in lower case with _ for every - . : / and space: `Tool-Call` and `tool.call`
 * become `tool_call`.
 */
function normalized(text: string): string {
  return text.toLowerCase().replace(/[-.:/ ]+/g, '_');
}

/**
 * Returns the kind of a custom event: llm or tool where attributes.span_kind says so, else by its
 * event type (`tool`, `tool_call`, `tool.search`, `llm`, …), else event.
 */
export function customKind(spanKind: unknown, eventTypes: readonly unknown[]): SpanKind {
  if (typeof spanKind === 'string') {
    const stated = normalized(spanKind);
    if (LLM.has(stated)) return 'llm';
    if (TOOL.has(stated)) return 'tool';
    if (stated === 'app' || stated === 'event') return stated;
  }
  for (const type of eventTypes) {
    if (typeof type !== 'string') continue;
    const stated = normalized(type);
    if (TOOL.has(stated) || stated.startsWith('tool_')) return 'tool';
    if (LLM.has(stated) || stated.startsWith('llm_')) return 'llm';
  }
  return 'event';
}
