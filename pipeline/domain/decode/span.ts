// Turns a draft into the canonical span: identity, times, ownership, tokens (estimated where
// missing), price, bounds. The same for all formats; the result always fits the columns of the
// store.
import { estimateTokens } from '../text/tokens.ts';
import { callIds, GATEWAY } from '../traces/call_records.ts';
import { spanIdOf } from '../traces/ids.ts';
import type { PiiRedactor, Redaction } from '../pii/pii.ts';
import { givenPrice, UNPRICED, type PriceBook, type Priced } from '../pricing/pricing.ts';
import type { Span, TraceOutcome } from '../traces/span.ts';
import { followTexts } from '../text/text_refs.ts';
import { eventDuration, eventTimes } from '../../../schemas/formats/times.ts';
import type { IngestEvent } from '../../../schemas/codec.ts';
import { addAttribute, contentText, isFields, type Draft, type Fields } from './draft.ts';
import { firstTokenMs, label, labelsOf, providerOf, type SpanLabels } from './labels.ts';
import { redactedDraft } from './redact.ts';
import { promptText, promptWithin } from './truncate.ts';

/** Tokens that the frame of a chat adds to each message. */
const TOKENS_PER_MESSAGE = 4;

/** An accepted event. */
export type RawEvent = IngestEvent;

export interface SpanDeps {
  prices: PriceBook;
  maxPromptTokens(orgId: string): number | null;
  /**
   * Returns the organization's redactor; null when it redacts nothing, or when the caller stores
   * nothing.
   */
  redactorOf(orgId: string): PiiRedactor | null;
}

/**
 * Returns the span of an event, or the chain's own span. `event` has passed its format's
 * validation. Counts are taken from what was sent; texts are what `redaction` leaves of it.
 */
export function spanOf(
  deps: SpanDeps,
  logged: RawEvent,
  event: Fields,
  draft: Draft,
  redaction: Redaction | null,
): Span {
  const { attributes: sent } = draft;
  const duration = eventDuration(event);
  const times = eventTimes(event, duration, logged.received_at);
  if (times.ended_at - times.started_at !== duration) addAttribute(sent, 'duration_ms', event['duration_ms']);
  const tokens = countTokens(draft, sent);
  const priced = priceOf(deps.prices, logged.org_id, draft, tokens, times.started_at);
  const whose = (...values: unknown[]): string => {
    const id = values.map(label).find((text) => text !== '') ?? '';
    return redaction === null ? id : redaction.text(id);
  };
  const shown = redaction === null ? draft : redactedDraft(draft, redaction);
  const tags = tagsOf(event['tags']);
  const prompt = promptWithin(shown, deps.maxPromptTokens(logged.org_id));
  const isAsSent = shown.messages === draft.messages && shown.prompt_text === draft.prompt_text;
  const sentTexts = { attributes: sent, prompt: isAsSent ? prompt.whole : promptText(draft), response: draft.response };
  const texts = { prompt: prompt.text.toWellFormed(), response: shown.response.toWellFormed() };
  const whole = followTexts(shown.attributes, sentTexts, texts);
  const attributes = captured(whole);
  if (prompt.truncated) attributes['prompt_truncated'] = true;
  const labels = labelsOf(sent, draft.resource);
  const span_id = spanIdOf(event, logged.event_hex);
  const parent = event['parent_span_id'];
  const span: Span = {
    org_id: logged.org_id,
    trace_id: logged.trace_id,
    span_id,
    // A span that names itself as its parent is a root, so that no reader follows a cycle.
    parent_span_id: typeof parent === 'string' && parent !== span_id ? parent : '',
    event_hex: logged.event_hex,
    ...times,
    received_at: logged.received_at,
    kind: draft.kind,
    name: shown.name.toWellFormed(),
    model: draft.model.toWellFormed(),
    provider: providerOf(draft, priced.price.source),
    source_format: logged.format,
    outcome: outcomeOf(event),
    agent_id: label(sent['agent_id']),
    department: label(sent['department']) || label(logged.label_department),
    realm: label(sent['realm']),
    ...(redaction === null ? labels : redactedLabels(labels, redaction)),
    session_id: whose(event['session_id'], sent['session_id'], sent['session.id']),
    user_id: whose(event['user_id'], sent['user_id'], sent['enduser.id'], sent['user.id'], logged.label_user_id),
    tags: redaction === null ? tags : tags.map((tag) => redaction.text(tag)),
    input_tokens: tokens.input,
    output_tokens: tokens.output,
    ...partsOf(draft, tokens),
    first_token_ms: firstTokenMs(sent, times.started_at),
    ...priced,
    attributes,
    ...texts,
    storage_bytes: Buffer.byteLength(logged.body),
    sandbox_seconds: sandboxSeconds(sent['sandbox_seconds']),
  };
  const kinds = redaction?.takeKinds() ?? [];
  if (kinds.length > 0) span.redacted = kinds;
  if (draft.record !== undefined) span.record = draft.record;
  if (attributes !== whole) span.call_ids = callIds(whole, GATEWAY);
  return span;
}

/** Attributes of a call whose content is not captured that are stored: facts of the service alone. */
const CAPTURED = [
  'gateway',
  'capture',
  'http_status',
  'cached',
  'stream',
  'aborted',
  'tokens_estimated',
  'price_missing',
];

/** Returns the attributes that are stored. The gateway marks calls of which it captures the usage alone. */
function captured(attributes: Record<string, unknown>): Record<string, unknown> {
  if (attributes['capture'] !== 'usage' || attributes['gateway'] !== true) return attributes;
  return Object.fromEntries(
    CAPTURED.filter((name) => attributes[name] !== undefined).map((name) => [name, attributes[name]]),
  );
}

function tagsOf(tags: unknown): string[] {
  return Array.isArray(tags) ? (tags as string[]).map((tag) => tag.toWellFormed()) : [];
}

const OUTCOMES: ReadonlySet<unknown> = new Set<TraceOutcome>(['success', 'error', 'timeout']);

/**
 * Returns the event's outcome; an app event may set it in its attributes; the default is success.
 */
function outcomeOf(event: Fields): TraceOutcome {
  const attributes = event['attributes'];
  const stated = event['outcome'] ?? (isFields(attributes) ? attributes['outcome'] : undefined);
  return OUTCOMES.has(stated) ? (stated as TraceOutcome) : 'success';
}

function sandboxSeconds(value: unknown): number {
  const seconds = typeof value === 'string' ? Number(value) : value;
  return typeof seconds === 'number' && seconds > 0 ? seconds : 0;
}

function redactedLabels(labels: SpanLabels, redaction: Redaction): SpanLabels {
  return {
    environment: redaction.text(labels.environment),
    service: redaction.text(labels.service),
    release: redaction.text(labels.release),
    prompt_name: redaction.text(labels.prompt_name),
    prompt_version: redaction.text(labels.prompt_version),
  };
}

interface Tokens {
  input: number;
  output: number;
}

/**
 * Returns tokens as reported; those that an answered model call does not report are estimated and
 * marked.
 */
function countTokens(draft: Draft, attributes: Record<string, unknown>): Tokens {
  const { input_tokens: input, output_tokens: output } = draft.usage;
  if (draft.kind !== 'llm' || (input !== null && output !== null)) return { input: input ?? 0, output: output ?? 0 };
  if (!draft.answered) return { input: input ?? 0, output: output ?? 0 };
  attributes['tokens_estimated'] = true;
  return { input: input ?? estimatePrompt(draft), output: output ?? estimateAnswer(draft) };
}

/** Returns the parts of the counted tokens; none exceeds the count that it is a part of. */
function partsOf({ usage }: Draft, tokens: Tokens) {
  const cached_input_tokens = Math.min(usage.cached_input_tokens, tokens.input);
  const written = usage.cache_write_tokens + usage.cache_write_1h_tokens;
  return {
    cached_input_tokens,
    cache_write_tokens: Math.min(written, tokens.input - cached_input_tokens),
    reasoning_tokens: Math.min(usage.reasoning_tokens, tokens.output),
  };
}

function estimatePrompt(draft: Draft): number {
  const tools = estimateJson(draft.attributes['gen_ai.tool.definitions']);
  if (draft.messages === null) return estimateTokens(draft.prompt_text) + tools;
  return (
    estimateTokens(draft.messages.map(messageText).join('\n')) + TOKENS_PER_MESSAGE * draft.messages.length + tools
  );
}

/**
 * Returns what a model reads of a message: its text, the tool calls of an earlier answer, a tool's
 * result (`output`). LangChain's messages have it in `kwargs`.
 */
function messageText(message: unknown): string {
  if (!isFields(message)) return contentText(message);
  const { tool_calls: calls, output, kwargs } = message;
  return [
    contentText(message['content']),
    Array.isArray(calls) && calls.length > 0 ? JSON.stringify(calls) : '',
    typeof output === 'string' ? output : '',
    isFields(kwargs) ? messageText(kwargs) : '',
  ].join('');
}

/** A model's output also includes its reasoning and its tool calls. */
function estimateAnswer({ response, attributes }: Draft): number {
  const reasoning = attributes['gen_ai.response.reasoning'];
  return (
    estimateTokens(response) +
    (typeof reasoning === 'string' ? estimateTokens(reasoning) : 0) +
    estimateJson(attributes['tool_calls'])
  );
}

const estimateJson = (value: unknown): number =>
  value === undefined || value === null ? 0 : estimateTokens(JSON.stringify(value));

function priceOf(prices: PriceBook, orgId: string, draft: Draft, tokens: Tokens, at: number): Priced {
  if (draft.repeats_usage === true) return UNPRICED;
  const given = draft.attributes['cost_usd'];
  if (typeof given === 'number' || typeof given === 'string') return givenPrice(given);
  if (draft.kind !== 'llm') return UNPRICED;
  if (draft.model === '') {
    // Without a model there is no price: a span with tokens must say that its cost is missing.
    if (tokens.input + tokens.output > 0) draft.attributes['price_missing'] = true;
    return UNPRICED;
  }
  const models =
    draft.answered_model === '' || draft.answered_model === draft.model
      ? [draft.model]
      : [draft.model, draft.answered_model];
  const usage = { ...draft.usage, input_tokens: tokens.input, output_tokens: tokens.output };
  const priced = prices.price({ org_id: orgId, models, provider: draft.provider, at, usage });
  if (priced.price.source === 'missing') draft.attributes['price_missing'] = true;
  return priced;
}
