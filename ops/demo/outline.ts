// Tree of a trace as indented text, one line per span, in the order of events. Takes the spans of a
// tree answer; returns lines that fit a terminal. Pure.
import { z } from 'zod';

export const outlineSpan = z.object({
  span_id: z.string(),
  parent_span_id: z.string().nullable(),
  name: z.string(),
  outcome: z.string(),
  duration_ms: z.number(),
  input_tokens: z.number(),
  output_tokens: z.number(),
  started_at: z.string(),
  response: z.string().nullish(),
  attributes: z.record(z.string(), z.unknown()),
});
export type OutlineSpan = z.infer<typeof outlineSpan>;

const TEXT_MAX = 72;

/**
 * Returns the spans below their parents, at most linesMax lines; the last one says how many are
 * left out.
 */
export function outline(spans: readonly OutlineSpan[], linesMax: number): string[] {
  const known = new Set(spans.map((span) => span.span_id));
  const below = new Map<string, OutlineSpan[]>();
  for (const span of spans.toSorted((a, b) => a.started_at.localeCompare(b.started_at))) {
    const parent = span.parent_span_id !== null && known.has(span.parent_span_id) ? span.parent_span_id : '';
    below.set(parent, [...(below.get(parent) ?? []), span]);
  }
  const lines: string[] = [];
  const add = (parent: string, depth: number): void => {
    for (const span of below.get(parent) ?? []) {
      lines.push(`${'  '.repeat(depth)}${lineOf(span)}`);
      add(span.span_id, depth + 1);
    }
  };
  add('', 0);
  return lines.length <= linesMax
    ? lines
    : [...lines.slice(0, linesMax - 1), `… and ${lines.length - linesMax + 1} more`];
}

function lineOf(span: OutlineSpan): string {
  const { attributes, input_tokens, output_tokens } = span;
  const kind = attributes['span_kind'] === 'event' ? '' : `${String(attributes['span_kind'])} `;
  const tokens = input_tokens + output_tokens === 0 ? '' : `, ${input_tokens} → ${output_tokens} tokens`;
  const failed = span.outcome === 'success' ? '' : ` ${span.outcome.toUpperCase()}`;
  const said = (span.response ?? '') === '' ? toolCalls(attributes['tool_calls']) : (span.response ?? '');
  return `${kind}${span.name}${failed} (${(span.duration_ms / 1000).toFixed(1)} s${tokens})${said === '' ? '' : `: ${shortened(said)}`}`;
}

/** Returns the tools that a turn without text called. */
function toolCalls(value: unknown): string {
  const calls = z.array(z.object({ function: z.object({ name: z.string() }) })).safeParse(value);
  return calls.success ? `calls ${calls.data.map((call) => call.function.name).join(', ')}` : '';
}

function shortened(text: string): string {
  const line = text.replace(/\s+/g, ' ').trim();
  return line.length <= TEXT_MAX ? line : `${line.slice(0, TEXT_MAX - 1)}…`;
}
