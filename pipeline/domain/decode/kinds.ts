// What kind of span a custom event is, and which of the named kinds of the sampling rules an event belongs to.
// In: what senders write, in any case and with any of - _ or a space. Out: members of closed sets.
import type { SpanKind } from '../traces/span.ts';

/** Events that every sampling profile keeps. */
export type NamedKind = 'loop' | 'tool_error' | 'stumble' | 'judge' | 'stat_gate' | 'mcp_auth';

/** The attribute that holds a custom event's event_type where its attributes have an event_type of their own. */
export const OTHER_EVENT_TYPE = 'event.event_type';

const NAMED = /(?:^|[^a-z0-9])(loop|tool[-_ ]error|stumble|judge|stat[-_ ]gate|mcp[-_ ]auth)(?![a-z0-9])/i;
/** Cheap test that most names fail: the letters that every named kind has. */
const MAYBE_NAMED = /loop|tool.error|stumble|judge|stat.gate|mcp.auth/i;

/** The named kind that a name or event type stands for, as a word of its own in it (`agent.loop`, `MCP-Auth failed`), or null. */
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

/** Lower case, with _ for every - . : / and space: `Tool-Call` and `tool.call` become `tool_call`. */
function normalized(text: string): string {
  return text.toLowerCase().replace(/[-.:/ ]+/g, '_');
}

/**
 * The kind of a custom event: llm or tool where attributes.span_kind says so, else where its event type does (`tool`,
 * `tool_call`, `tool.search`, `llm`, …), else event.
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
