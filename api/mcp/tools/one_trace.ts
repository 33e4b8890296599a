// Tools that read one trace and its spans.
import { z } from 'zod';
import type { ConversationStep } from '../../telemetry/trace/conversation_schema.ts';
import type { Outline, SpanDetail } from '../../telemetry/trace/schema.ts';
import { ApiError } from '../../http/errors.ts';
import { Digest, type ToolAnswer } from '../digest.ts';
import { clip } from '../tokens.ts';
import { args, defineTool, maxChars, type ToolCall, traceId, usd } from '../tool.ts';

const TRACE_BUDGET = 6000;
const SPAN_BUDGET = 4000;
const NAME_CHARS = 80;
const MESSAGE_CHARS = 1500;
const ERROR_CHARS = 500;
const INDENT_MAX = 12;

export const getTrace = defineTool({
  name: 'get_trace',
  title: 'Get a trace',
  description:
    'outline: the tree, a line a span. errors: failed spans with messages. messages: the conversation as a transcript. Then get_span.',
  routes: ['getTraceOutline', 'getTraceConversation'],
  input: z.object({
    trace_id: traceId,
    view: z.enum(['outline', 'errors', 'messages']).default('outline'),
    from: z.string().max(600).optional().describe('where to read on, from the previous answer'),
    max_chars: maxChars(20_000),
  }),
  run: async ({ trace_id, view, from, max_chars }, call) => {
    if (view === 'messages') return readMessages(trace_id, from, max_chars, call);
    const { data, meta } = await call.route('getTraceOutline', { params: { trace_id } });
    return readOutline(data, Number(meta['total']), { view, from: startOf(from), max_chars });
  },
});

function startOf(from: string | undefined): number {
  const start = Number(from ?? 0);
  if (!Number.isSafeInteger(start) || start < 0)
    throw new ApiError('invalid_request', 'from: must be the number that the previous answer named');
  return start;
}

interface OutlineView {
  view: 'outline' | 'errors';
  from: number;
  max_chars: number;
}

function readOutline(outline: Outline, total: number, { view, from, max_chars }: OutlineView): ToolAnswer {
  const { trace, spans, errors, scores } = outline;
  const { trace_id } = trace;
  const digest = new Digest(TRACE_BUDGET, max_chars)
    .head(
      `Trace ${trace_id}: ${trace.outcome}, ${trace.duration_ms} ms, ${usd(trace.cost_usd)}, ${trace.input_tokens} + ${trace.output_tokens} tokens, ${total} spans, ${errors.length} failed shown by errors, ${scores.length} scores, started ${trace.started_at}.`,
    )
    .info({ trace_id, outcome: trace.outcome, duration_ms: trace.duration_ms, cost_usd: trace.cost_usd, spans: total });
  const messages = new Map(errors.map(({ i, message }) => [i, message]));
  const depths = depthsOf(spans.parent);
  const wanted =
    view === 'outline'
      ? spans.span_id.map((_, index) => index)
      : spans.outcome.flatMap((outcome, index) => (outcome === 'success' ? [] : [index]));
  let at = from;
  for (; at < wanted.length; at += 1) {
    const index = wanted[at] ?? 0;
    const message = messages.get(index);
    const [line, item] = spanRow(outline, index, view === 'outline' ? (depths[index] ?? 0) : 0, message);
    if (!digest.row(line, item)) break;
  }
  const next =
    at < wanted.length
      ? `get_trace ${args({ trace_id, view, from: String(at) })}${view === 'outline' && errors.length > 0 ? ', or view errors' : ''}`
      : wanted.length === 0
        ? 'no span failed; view messages shows the conversation'
        : null;
  return digest.answer(next);
}

/** Returns the depth of each span; a parent comes before its children. */
function depthsOf(parents: readonly number[]): number[] {
  const depths: number[] = [];
  for (const parent of parents) depths.push(parent < 0 ? 0 : (depths[parent] ?? 0) + 1);
  return depths;
}

function spanRow(
  { spans, names, models }: Outline,
  index: number,
  depth: number,
  message: string | undefined,
): [string, Record<string, unknown>] {
  const span_id = spans.span_id[index] ?? '';
  const name = clip(names[spans.name[index] ?? 0], NAME_CHARS);
  const model = clip(models[spans.model[index] ?? -1], NAME_CHARS);
  const [kind, outcome] = [spans.kind[index] ?? '', spans.outcome[index] ?? ''];
  const [duration_ms, cost_usd] = [spans.duration_ms[index] ?? 0, spans.cost_usd[index] ?? 0];
  const tokens = (spans.input_tokens[index] ?? 0) + (spans.output_tokens[index] ?? 0);
  const error = message === undefined ? null : clip(message, ERROR_CHARS);
  const facts = [
    `${span_id} ${kind} ${name}`,
    ...(model === '' || model === name ? [] : [model]),
    `${duration_ms} ms`,
    ...(tokens === 0 ? [] : [`${tokens} tokens`]),
    ...(cost_usd === 0 ? [] : [usd(cost_usd)]),
    ...(outcome === 'success' ? [] : [outcome]),
  ];
  const line = `${'  '.repeat(Math.min(depth, INDENT_MAX))}- ${facts.join(' · ')}${error === null || error === '' ? '' : `: ${error}`}`;
  const item = { span_id, kind, name, duration_ms, outcome, depth };
  return [line, error === null ? item : { ...item, error }];
}

/** `from` is the number of steps of a page that were shown, and the cursor of the page: 3~cursor. */
async function readMessages(
  trace_id: string,
  from: string | undefined,
  max_chars: number,
  call: ToolCall,
): Promise<ToolAnswer> {
  const [skip = '0', cursor = ''] = (from ?? '').split('~');
  const query = cursor === '' ? {} : { cursor };
  const page = await call.route('getTraceConversation', { params: { trace_id }, query });
  const { steps } = page.data;
  const digest = new Digest(TRACE_BUDGET, max_chars)
    .head(`Conversation of ${trace_id}: ${String(page.meta['total'])} model calls.`)
    .info({ trace_id, model_calls: page.meta['total'] });
  let at = startOf(skip === '' ? '0' : skip);
  for (; at < steps.length; at += 1) {
    const step = steps[at];
    if (step === undefined || addStep(digest, step)) continue;
    // A step that is larger than an answer is shown as far as it fits.
    if (digest.rows === 0) at += 1;
    break;
  }
  const after = page.meta['next_cursor'];
  const place = at < steps.length ? `${at}~${cursor}` : typeof after === 'string' ? `0~${after}` : null;
  return digest.answer(place === null ? null : `get_trace ${args({ trace_id, view: 'messages', from: place })}`);
}

/** Adds one model call. @returns false when not all of it fits; then nothing is added unless it is the first */
function addStep(digest: Digest, step: ConversationStep): boolean {
  const { span_id, name, model, outcome, duration_ms, added, answer } = step;
  const lines = [
    `## ${clip(name, NAME_CHARS)} · ${clip(model, NAME_CHARS)} · ${outcome} · ${duration_ms} ms · span ${span_id}`,
    ...(step.kept === 0 ? [] : [`(${step.kept} earlier messages)`]),
    ...added
      .filter(({ repeats }) => repeats === null)
      .map(
        ({ role, text, tool_calls }) => `${clip(role, NAME_CHARS)}: ${clip(text, MESSAGE_CHARS)}${callsOf(tool_calls)}`,
      ),
    ...(answer === null ? [] : [`answer: ${clip(answer.text, MESSAGE_CHARS)}${callsOf(answer.tool_calls)}`]),
    ...(step.error === null ? [] : [`error: ${clip(step.error, ERROR_CHARS)}`]),
  ];
  const text = lines.join('\n');
  const item = (transcript: string) => ({ span_id, model: clip(model, NAME_CHARS), outcome, duration_ms, transcript });
  if (digest.row(text, item(text))) return true;
  if (digest.rows > 0) return false;
  const cut = digest.fitting(text.slice(0, text.length - 1));
  if (!digest.row(cut, { span_id, transcript: cut })) digest.row(lines[0] ?? '', { span_id });
  return false;
}

const callsOf = (calls: readonly { name: string; arguments: string; result?: string | null }[]): string =>
  calls
    .map(
      (one) =>
        `\n  calls ${clip(one.name, NAME_CHARS)}(${clip(one.arguments, ERROR_CHARS)})${one.result == null ? '' : ` → ${clip(one.result, ERROR_CHARS)}`}`,
    )
    .join('');

export const getSpan = defineTool({
  name: 'get_span',
  title: 'Get a span',
  description: 'Returns prompt, response or attributes of one span, from offset on; next_offset reads on.',
  routes: ['getSpan'],
  input: z.object({
    trace_id: traceId,
    span_id: z.string().min(1).max(128),
    part: z.enum(['all', 'prompt', 'response', 'attributes']).default('all'),
    offset: z.int().min(0).default(0),
    max_chars: maxChars(12_000),
  }),
  run: async ({ trace_id, span_id, part, offset, max_chars }, call) => {
    const { data: span } = await call.route('getSpan', { params: { trace_id, span_id } });
    const text = textOf(span, part).toWellFormed();
    const digest = new Digest(SPAN_BUDGET, max_chars).head(
      `Span ${span_id}: ${span.kind}, ${span.outcome}, ${span.duration_ms} ms, ${usd(span.cost_usd)}, ${span.input_tokens} + ${span.output_tokens} tokens, texts ${span.text_state}. ${part}: characters ${Math.min(offset, text.length)} on, of ${text.length}.`,
    );
    const shown = digest.fitting(`${text.slice(offset)} `).slice(0, Math.max(0, text.length - offset));
    const end = offset + shown.length;
    const next_offset = end < text.length ? end : null;
    digest.info({ span_id, part, offset, chars: text.length, next_offset });
    if (shown !== '') addText(digest, shown);
    const cut = span.truncated.prompt || span.truncated.response;
    const next =
      next_offset !== null
        ? `get_span ${args({ trace_id, span_id, part, offset: next_offset })}`
        : cut
          ? `the texts are longer: GET /v1/traces/${trace_id}/spans/${span_id}/texts/${part === 'response' ? 'response' : 'prompt'} has all of them`
          : null;
    return digest.answer(next);
  },
});

/** Adds a text that fits; the head of its row may need a little more room. */
function addText(digest: Digest, text: string): void {
  digest.row(text, { text });
}

function textOf({ name, model, prompt, response, attributes, events }: SpanDetail, part: string): string {
  if (part === 'prompt') return prompt ?? '';
  if (part === 'response') return response ?? '';
  const facts = JSON.stringify(attributes, null, 1);
  if (part === 'attributes') return facts;
  return [
    `name: ${name}`,
    ...(model === '' ? [] : [`model: ${model}`]),
    ...(prompt === undefined ? [] : [`# prompt\n${prompt}`]),
    ...(response === undefined ? [] : [`# response\n${response}`]),
    ...(events.length === 0 ? [] : [`# events\n${JSON.stringify(events)}`]),
    `# attributes\n${facts}`,
  ].join('\n');
}
