// Classifies an OTLP span (model call, tool, or anything else) and reads its vendor, model and
// usage, by the OpenTelemetry conventions for generative AI (old and new names), OpenInference,
// OpenLLMetry and the Vercel AI SDK. Usage is read from model calls alone: a span above them (an
// agent's run, a workflow, ai.generateText) repeats their usage and is an event here.
import type { SpanKind } from '../traces/span.ts';
import { firstString } from './custom.ts';
import { NO_USAGE, tokenNumber, type Fields, type ReportedUsage } from './draft.ts';

/** Values of gen_ai.operation.name that denote one model call. */
const CALLS = new Set([
  'chat',
  'chat_completion',
  'completion',
  'text_completion',
  'generate_content',
  'responses',
  'messages',
  'embeddings',
  'embedding',
]);
const EMBEDDINGS = new Set(['embeddings', 'embedding']);
/**
 * The Vercel AI SDK's own names: ai.generateText.doGenerate is a model call, ai.generateText is
 * not. A reranking has no tokens and is an event in every convention.
 */
const AI_SDK_CALL = /^ai\.(?!rerank\.)\w+\.do[A-Z]\w*$/;

function textOf(attributes: Fields, key: string): string {
  const value = attributes[key];
  return typeof value === 'string' ? value : '';
}

/** Name of the tracer of the Vercel AI SDK from version 7 on (package @ai-sdk/otel), unless it is given another. */
const AI_SDK_SCOPE = 'gen_ai';

/** Returns true for a span of the Vercel AI SDK, also one of a tracer that the application gave it. */
const isOfAiSdk = (attributes: Fields, scope: string): boolean =>
  scope === AI_SDK_SCOPE || Object.keys(attributes).some((key) => key.startsWith('ai.'));

/** Value of a span's `kind` on the side that serves a request. */
const SERVER = 2;

/**
 * Returns the kind of a span.
 * @param scope name of the instrumentation scope; empty when it has none
 * @param side the span's own `kind` in OTLP
 */
export function otlpKind(attributes: Fields, scope: string, side: unknown): SpanKind {
  const operation = textOf(attributes, 'gen_ai.operation.name').toLowerCase();
  if (EMBEDDINGS.has(operation) && isOuterEmbedding(attributes) && isOfAiSdk(attributes, scope)) return 'event';
  if (CALLS.has(operation)) return repeatsAdkCall(attributes, operation) ? 'event' : 'llm';
  // A tool of an MCP server has a span on either side; the side of the client is the tool call.
  if (side === SERVER && (operation === 'execute_tool' || isMcpCall(attributes))) return 'event';
  if (operation === 'execute_tool') return 'tool';
  if (operation !== '') return 'event';
  const inference = textOf(attributes, 'openinference.span.kind').toUpperCase();
  if (inference !== '')
    return inference === 'LLM' || inference === 'EMBEDDING' ? 'llm' : inference === 'TOOL' ? 'tool' : 'event';
  const sdk = textOf(attributes, 'ai.operationId');
  if (sdk !== '') return AI_SDK_CALL.test(sdk) ? 'llm' : sdk === 'ai.toolCall' ? 'tool' : 'event';
  const request = textOf(attributes, 'llm.request.type');
  if (request !== '' && request !== 'rerank' && request !== 'unknown') return 'llm';
  const traceloop = textOf(attributes, 'traceloop.span.kind');
  if (traceloop !== '') return traceloop === 'tool' ? 'tool' : 'event';
  const langsmith = textOf(attributes, 'langsmith.span.kind').toLowerCase();
  if (langsmith === 'llm' || langsmith === 'embedding') return 'llm';
  if (langsmith !== '') return langsmith === 'tool' ? 'tool' : 'event';
  if (textOf(attributes, 'gen_ai.tool.name') !== '') return 'tool';
  if (isMcpCall(attributes)) return 'tool';
  // Before the conventions had operations, a model call was a span that named a vendor and a model.
  const vendor = firstString(attributes, ['gen_ai.provider.name', 'gen_ai.system']);
  return vendor !== '' && firstString(attributes, ['gen_ai.request.model', 'gen_ai.response.model']) !== ''
    ? 'llm'
    : 'event';
}

const isMcpCall = (attributes: Fields): boolean => textOf(attributes, 'mcp.method.name') === 'tools/call';

/**
 * Returns true for the outer one of the two nested spans that embed() and embedMany() of the Vercel
 * AI SDK make of one operation. The inner one is the call and has the usage. Before version 1.0.75 of
 * @ai-sdk/otel both have it, and only the names of recorded inputs and outputs differ.
 */
const isOuterEmbedding = (attributes: Fields): boolean =>
  firstTokens(attributes, INPUT) === null ||
  Object.hasOwn(attributes, 'ai.value') ||
  Object.hasOwn(attributes, 'ai.embedding');

/** Google's ADK makes a span of this operation within its span of the same call, which has the texts. */
const repeatsAdkCall = (attributes: Fields, operation: string): boolean =>
  operation === 'generate_content' && Object.hasOwn(attributes, 'gcp.vertex.agent.event_id');

/** Returns the requested model, or the answering one when the request names none. */
export function otlpModel(attributes: Fields): string {
  return firstString(attributes, [
    'gen_ai.request.model',
    'ai.model.id',
    'llm.request.model',
    'llm.model_name',
    'embedding.model_name',
    'gen_ai.response.model',
    'ai.response.model',
  ]);
}

const ANSWERED = ['gen_ai.response.model', 'ai.response.model', 'llm.response.model'];

export function otlpAnsweredModel(attributes: Fields): string {
  return firstString(attributes, ANSWERED);
}

/** Vendors whose names differ from the price table's. */
const VENDORS: readonly (readonly [RegExp, string])[] = [
  [/^(az|azure)\b/, 'azure'],
  [/^(aws|amazon)\b/, 'aws'],
  [/^(gcp|google|vertex)/, 'google'],
  [/^mistral/, 'mistral'],
  [/^x_?ai\b/, 'x-ai'],
];

const VENDOR = ['gen_ai.provider.name', 'gen_ai.system', 'llm.provider', 'llm.system', 'ai.model.provider'];

/** Returns the vendor without an SDK's suffix (openai.chat); null when none is named. */
export function otlpProvider(attributes: Fields): string | null {
  const named = firstString(attributes, VENDOR);
  return named === '' ? null : vendorOf(named);
}

/** Returns the name that a vendor has in the price table. */
export function vendorOf(named: string): string {
  const lower = named.toLowerCase();
  return VENDORS.find(([pattern]) => pattern.test(lower))?.[1] ?? lower.split('.', 1)[0] ?? lower;
}

function firstTokens(attributes: Fields, keys: readonly string[]): number | null {
  for (const key of keys) {
    const tokens = tokenNumber(attributes[key]);
    if (tokens !== null) return tokens;
  }
  return null;
}

const INPUT = [
  'gen_ai.usage.input_tokens',
  'gen_ai.usage.prompt_tokens',
  'llm.token_count.prompt',
  'ai.usage.inputTokens',
  'ai.usage.promptTokens',
  'ai.usage.tokens',
  'llm.usage.prompt_tokens',
];
const OUTPUT = [
  'gen_ai.usage.output_tokens',
  'gen_ai.usage.completion_tokens',
  'llm.token_count.completion',
  'ai.usage.outputTokens',
  'ai.usage.completionTokens',
  'llm.usage.completion_tokens',
];
const CACHED = [
  'gen_ai.usage.cache_read.input_tokens',
  'gen_ai.usage.cache_read_input_tokens',
  'gen_ai.usage.input_tokens.cached',
  'llm.token_count.prompt_details.cache_read',
  'ai.usage.inputTokenDetails.cacheReadTokens',
  'ai.usage.cachedInputTokens',
];
const WRITTEN = [
  'gen_ai.usage.cache_write.input_tokens',
  'gen_ai.usage.cache_creation.input_tokens',
  'gen_ai.usage.cache_creation_input_tokens',
  'gen_ai.usage.cache_write_input_tokens',
  'llm.token_count.prompt_details.cache_write',
  'ai.usage.inputTokenDetails.cacheWriteTokens',
];
const REASONING = [
  'gen_ai.usage.reasoning.output_tokens',
  'gen_ai.usage.reasoning_tokens',
  'gen_ai.usage.output_tokens.reasoning',
  'llm.token_count.completion_details.reasoning',
  'ai.usage.outputTokenDetails.reasoningTokens',
  'ai.usage.reasoningTokens',
];
const AUDIO_IN = ['gen_ai.usage.audio.input_tokens', 'llm.token_count.prompt_details.audio'];
const AUDIO_OUT = ['gen_ai.usage.audio.output_tokens', 'llm.token_count.completion_details.audio'];

/** Attributes from which a call's usage, vendor and answered model are read. */
export const OTLP_COUNTING: readonly string[] = [
  ...INPUT,
  ...OUTPUT,
  ...CACHED,
  ...WRITTEN,
  ...AUDIO_IN,
  ...AUDIO_OUT,
  ...VENDOR,
  ...ANSWERED,
];

/** Returns the usage of a model call. */
export function otlpUsage(attributes: Fields): ReportedUsage {
  const input = firstTokens(attributes, INPUT);
  const output = firstTokens(attributes, OUTPUT);
  const cached = firstTokens(attributes, CACHED) ?? 0;
  const written = firstTokens(attributes, WRITTEN) ?? 0;
  return {
    ...NO_USAGE,
    // The conventions count cached tokens within the input. A span with more cached tokens than
    // input counts as Anthropic does.
    input_tokens: input !== null && cached + written > input ? input + cached + written : input,
    output_tokens: output ?? (input !== null && isEmbedding(attributes) ? 0 : null),
    cached_input_tokens: cached,
    cache_write_tokens: written,
    input_audio_tokens: firstTokens(attributes, AUDIO_IN) ?? 0,
    output_audio_tokens: firstTokens(attributes, AUDIO_OUT) ?? 0,
    reasoning_tokens: firstTokens(attributes, REASONING) ?? 0,
  };
}

/** Embeddings return no text, so they have no output tokens. */
function isEmbedding(attributes: Fields): boolean {
  return (
    EMBEDDINGS.has(textOf(attributes, 'gen_ai.operation.name').toLowerCase()) ||
    textOf(attributes, 'openinference.span.kind').toUpperCase() === 'EMBEDDING' ||
    textOf(attributes, 'llm.request.type') === 'embedding' ||
    /\.doEmbed/.test(textOf(attributes, 'ai.operationId'))
  );
}

const RUNS = new Set(['invoke_agent', 'create_agent', 'invoke_workflow', 'agent_step', 'plan']);

/** Returns true when a span stands above model calls, so that its usage and cost repeat theirs. */
export function otlpRepeats(attributes: Fields, kind: SpanKind): boolean {
  if (kind !== 'event') return false;
  const operation = textOf(attributes, 'gen_ai.operation.name').toLowerCase();
  return (
    RUNS.has(operation) ||
    EMBEDDINGS.has(operation) ||
    repeatsAdkCall(attributes, operation) ||
    ['AGENT', 'CHAIN'].includes(textOf(attributes, 'openinference.span.kind').toUpperCase()) ||
    textOf(attributes, 'ai.operationId') !== '' ||
    ['workflow', 'agent', 'task'].includes(textOf(attributes, 'traceloop.span.kind'))
  );
}
