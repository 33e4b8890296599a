// A tracing processor for the OpenAI Agents SDK, which has traces of its own: makes spans of
// OpenTelemetry of them. `addTraceProcessor(new MillraceTracingProcessor())`.
import { context, type Context, type Span, SpanStatusCode, trace, TraceFlags } from '@opentelemetry/api';
import { createHash } from 'node:crypto';
import type { StepKind } from './kinds.ts';
import { kindAttributes } from './kinds.ts';

/** A trace of the Agents SDK, as far as it is read. */
interface AgentsTrace {
  traceId: string;
  name: string;
  groupId?: string | null;
  metadata?: Record<string, unknown>;
}

interface AgentsSpan {
  traceId: string;
  spanId: string;
  parentId?: string | null;
  startedAt?: string | null;
  endedAt?: string | null;
  spanData: Record<string, unknown> & { type: string };
  error?: { message: string; data?: unknown } | null;
}

const TRACER = 'millrace.openai-agents';
/** Spans that have started and not ended; the oldest are ended when there are more. */
const OPEN_MAX = 10_000;

const KINDS: Record<string, StepKind> = {
  agent: 'agent',
  generation: 'llm',
  response: 'llm',
  function: 'tool',
  mcp_tools: 'tool',
  guardrail: 'guardrail',
};

const DONE = Promise.resolve();

const hex = (id: string, digits: number): string => createHash('sha256').update(id).digest('hex').slice(0, digits);

/** Makes a span of each span of the Agents SDK. */
export class MillraceTracingProcessor {
  readonly #roots = new Map<string, { span: Span; session: string | null }>();
  readonly #open = new Map<string, Span>();

  onTraceStart(started: AgentsTrace): Promise<void> {
    const session = started.groupId ?? null;
    const span = trace.getTracer(TRACER).startSpan(started.name, {
      attributes: { ...kindAttributes('chain', started.name), ...sessionOf(session), ...metadataOf(started.metadata) },
    });
    bounded(this.#roots, OPEN_MAX, (root) => {
      root.span.end();
    });
    this.#roots.set(started.traceId, { span, session });
    return DONE;
  }

  onTraceEnd(ended: AgentsTrace): Promise<void> {
    this.#roots.get(ended.traceId)?.span.end();
    this.#roots.delete(ended.traceId);
    return DONE;
  }

  onSpanStart(started: AgentsSpan): Promise<void> {
    const root = this.#roots.get(started.traceId);
    const { type } = started.spanData;
    const name = nameOf(started.spanData);
    const kind = KINDS[type] ?? 'step';
    const span = trace.getTracer(TRACER).startSpan(
      name,
      {
        attributes: { ...kindAttributes(kind, name), ...sessionOf(root?.session ?? null), 'openai.agents.type': type },
        ...(typeof started.startedAt === 'string' ? { startTime: new Date(started.startedAt) } : {}),
      },
      this.#parentOf(started),
    );
    bounded(this.#open, OPEN_MAX, (open) => {
      open.end();
    });
    this.#open.set(started.spanId, span);
    return DONE;
  }

  onSpanEnd(ended: AgentsSpan): Promise<void> {
    const span = this.#open.get(ended.spanId);
    if (span === undefined) return DONE;
    this.#open.delete(ended.spanId);
    describe(span, ended);
    if (ended.error !== undefined && ended.error !== null)
      span.setStatus({ code: SpanStatusCode.ERROR, message: ended.error.message });
    span.end(typeof ended.endedAt === 'string' ? new Date(ended.endedAt) : undefined);
    return DONE;
  }

  /** Ends the spans that are open. */
  shutdown(): Promise<void> {
    for (const span of this.#open.values()) span.end();
    for (const { span } of this.#roots.values()) span.end();
    this.#open.clear();
    this.#roots.clear();
    return DONE;
  }

  /** Does nothing: the span processor of init sends the spans. */
  forceFlush(): Promise<void> {
    return DONE;
  }

  #parentOf({ traceId, parentId }: AgentsSpan): Context {
    const active = context.active();
    const parent =
      (typeof parentId === 'string' ? this.#open.get(parentId) : undefined) ?? this.#roots.get(traceId)?.span;
    if (parent !== undefined) return trace.setSpan(active, parent);
    // The trace began before this processor was added.
    return trace.setSpanContext(active, {
      traceId: hex(traceId, 32),
      spanId: hex(parentId ?? traceId, 16),
      traceFlags: TraceFlags.SAMPLED,
      isRemote: true,
    });
  }
}

function bounded<V>(open: Map<string, V>, max: number, end: (value: V) => void): void {
  if (open.size < max) return;
  const [oldest] = open;
  if (oldest === undefined) return;
  end(oldest[1]);
  open.delete(oldest[0]);
}

const sessionOf = (session: string | null) => (session === null ? {} : { 'session.id': session });

const metadataOf = (metadata: Record<string, unknown> = {}) =>
  Object.fromEntries(Object.entries(metadata).map(([key, value]) => [`metadata.${key}`, textOf(value)]));

const textOf = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value));

function nameOf(data: AgentsSpan['spanData']): string {
  const { name, type } = data;
  return typeof name === 'string' && name !== '' ? name : type;
}

const fieldsOf = (value: unknown): Record<string, unknown> =>
  typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};

/** A call of a model, as the span of either API describes it. */
interface Call {
  model: unknown;
  id: unknown;
  output: unknown;
  usage: Record<string, unknown>;
}

/** Returns the call of a span. Chat completions have their usage and their message in the completion alone. */
function callOf({ type, ...data }: AgentsSpan['spanData']): Call | null {
  if (type !== 'generation' && type !== 'response') return null;
  const response = fieldsOf(data['_response']);
  const outputs: unknown[] = Array.isArray(data['output']) ? data['output'] : [];
  const completion = fieldsOf(outputs.find((one) => fieldsOf(one)['object'] === 'chat.completion'));
  const choices: unknown[] = Array.isArray(completion['choices']) ? completion['choices'] : [];
  return {
    model: data['model'] ?? response['model'],
    id: data['response_id'] ?? response['id'] ?? idOf(completion),
    output: fieldsOf(choices[0])['message'] ?? data['output'] ?? response['output'],
    usage: fieldsOf(data['usage'] ?? response['usage'] ?? completion['usage']),
  };
}

/** Returns the id of a completion. A streamed one has the same made-up id as all others. */
const idOf = ({ id }: Record<string, unknown>): unknown => (id === 'FAKE_ID' ? undefined : id);

/** Returns items of a conversation as the Responses API writes them; the Agents SDK has names of its own. */
function itemsOf(input: unknown): unknown {
  if (!Array.isArray(input)) return input;
  return input.map((item: unknown) => {
    const { callId, type, ...fields } = fieldsOf(item);
    if (typeof callId !== 'string') return item;
    if (type !== 'function_call_result') return { type, call_id: callId, ...fields };
    const output = fieldsOf(fields['output'])['text'] ?? fields['output'];
    return { type: 'function_call_output', call_id: callId, output };
  });
}

/** Adds what is known at the end of a span. Turns and tasks repeat the usage of the calls in them. */
function describe(span: Span, { spanData }: AgentsSpan): void {
  const call = callOf(spanData);
  const input = spanData['input'] ?? itemsOf(spanData['_input']);
  const output = call === null ? spanData['output'] : call.output;
  if (input !== undefined && input !== null) span.setAttribute('input.value', textOf(input));
  if (output !== undefined && output !== null) span.setAttribute('output.value', textOf(output));
  if (spanData.type === 'guardrail') span.setAttribute('guardrail.triggered', spanData['triggered'] === true);
  if (call === null) return;
  if (typeof call.model === 'string') span.setAttribute('gen_ai.request.model', call.model);
  if (typeof call.id === 'string') span.setAttribute('gen_ai.response.id', call.id);
  for (const [key, amount] of amountsOf(call.usage))
    if (typeof amount === 'number') span.setAttribute(`gen_ai.usage.${key}`, amount);
}

/** Returns amounts of tokens by attribute, from the names of either API. */
function amountsOf(usage: Record<string, unknown>): [string, unknown][] {
  const given = fieldsOf(usage['input_tokens_details'] ?? usage['prompt_tokens_details']);
  const made = fieldsOf(usage['output_tokens_details'] ?? usage['completion_tokens_details']);
  return [
    ['input_tokens', usage['input_tokens'] ?? usage['prompt_tokens']],
    ['output_tokens', usage['output_tokens'] ?? usage['completion_tokens']],
    ['cache_read.input_tokens', given['cached_tokens']],
    ['reasoning.output_tokens', made['reasoning_tokens']],
  ];
}
