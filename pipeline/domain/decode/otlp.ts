// Decoder of the format `otlp`: an OpenTelemetry span. In: the body in the ingest log, {resource,
// scope, span}. Out: the fields that all formats have, and a draft. The span keeps its own name;
// its other attributes stay, joined by resource, scope, events, links and status message.
// Attributes that became prompt and response, or that repeat them, are removed, so that redaction
// and retention apply to them as texts.
import type { Refusal } from '../../../schemas/formats/refusal.ts';
import { NAME_LENGTH_MAX } from '../../../schemas/formats/fields.ts';
import type { SpanKind } from '../traces/span.ts';
import { readDialects } from './dialects.ts';
import { addAttribute, isFields, NO_USAGE, type Draft, type Fields } from './draft.ts';
import { otlpAnsweredModel, otlpKind, otlpModel, otlpProvider, otlpRepeats, otlpUsage } from './otlp_kind.ts';
import { readOtlpLog } from './otlp_log.ts';
import { conversationOf, type Conversation } from './otlp_messages.ts';
import { fieldsOf, firstText, parsedText, textsOf } from './otlp_parts.ts';
import { exceptionOf, otlpEvent } from './otlp_span.ts';

const TAGS_MAX = 64;
const TAG_LENGTH_MAX = 256;
const SESSIONS = [
  'session_id',
  'session.id',
  'gen_ai.conversation.id',
  'langfuse.session.id',
  'traceloop.association.properties.session_id',
  'ai.telemetry.metadata.sessionId',
  'ai.telemetry.metadata.session_id',
  'ai.settings.context.sessionId',
  'ai.settings.context.session_id',
  'mastra.metadata.sessionId',
  'mastra.metadata.session_id',
  'gcp.vertex.agent.session_id',
];
const USERS = [
  'user_id',
  'user.id',
  'enduser.id',
  'langfuse.user.id',
  'traceloop.association.properties.user_id',
  'ai.telemetry.metadata.userId',
  'ai.telemetry.metadata.user_id',
  'ai.settings.context.userId',
  'ai.settings.context.user_id',
  'mastra.metadata.userId',
  'mastra.metadata.user_id',
];
const AGENTS = ['agent_id', 'gen_ai.agent.id'];
const AGENT_NAMES = ['gen_ai.agent.name', 'gen_ai.workflow.name'];
const TAGS = [
  'tags',
  'tag.tags',
  'langfuse.trace.tags',
  'ai.telemetry.metadata.tags',
  'ai.settings.context.tags',
  'traceloop.association.properties.tags',
];
const KINDS = ['', 'internal', 'server', 'client', 'producer', 'consumer'];
/** Attributes of span events that hold messages. */
const SAID = new Set([
  'content',
  'message',
  'tool_calls',
  'gen_ai.event.content',
  'gen_ai.prompt',
  'gen_ai.completion',
]);
const SAID_BY = /^gen_ai\.(system|user|assistant|tool)\.message$|^gen_ai\.(choice|content\.(prompt|completion))$/;
const DETAILS = 'gen_ai.client.inference.operation.details';
const DETAILS_SAID = new Set(['gen_ai.system_instructions', 'gen_ai.input.messages', 'gen_ai.output.messages']);

/**
 * Reads an event of the ingest log.
 * @param receivedAt milliseconds since the epoch
 */
export function readOtlp(value: unknown, receivedAt: number): { ok: true; event: Fields; draft: Draft } | Refusal {
  if (isFields(value) && isFields(value['log'])) return readOtlpLog(value, receivedAt);
  if (!isFields(value) || !isFields(value['span'])) return { ok: false, path: 'span', message: 'must be an object' };
  const { span } = value;
  const checked = otlpEvent(span, receivedAt);
  if (!checked.ok) return checked;
  const resource = fieldsOf(value['resource']);
  const ofResource = fieldsOf(resource['attributes']);
  const scopeName = fieldsOf(value['scope'])['name'];
  const scope = typeof scopeName === 'string' ? scopeName : '';
  const own = readDialects(fieldsOf(span['attributes']), String(span['name']), scope);
  const given = own.attributes;
  const sources = [given, ofResource];
  const event = {
    ...checked.event,
    session_id: firstText(sources, SESSIONS),
    user_id: firstText(sources, USERS),
    tags: tagsOf(given),
  };
  if (own.failed && event.outcome === 'success') event.outcome = 'error';
  if (own.is_root) event.parent_span_id = '';
  const events = Array.isArray(span['events']) ? (span['events'] as unknown[]) : [];
  const kind = otlpKind(given, scope, span['kind']);
  const said = conversationOf(given, events, kind === 'llm');
  const attributes = attributesOf(given, said);
  // The vendor's raw answer is removed with its text; the id by which the vendor finds it stays.
  if (kind === 'llm')
    addAttribute(attributes, 'gen_ai.response.id', firstText([fieldsOf(parsedText(given['output.value']))], ['id']));
  addAttribute(attributes, 'agent_id', firstText(sources, AGENTS) ?? firstText(sources, AGENT_NAMES));
  addPrompt(attributes, given);
  for (const key of ['department', 'realm']) addAttribute(attributes, key, ofResource[key]);
  if (event.outcome !== 'success') addAttribute(attributes, 'error_message', errorOf(span));
  addEnvelope(attributes, { value, resource, ofResource, span, events });
  return { ok: true, event, draft: { ...draftOf(kind, span, given, attributes, said), resource: ofResource } };
}

const PROMPT_NAMES = ['prompt_name', 'gen_ai.prompt.name', 'traceloop.prompt.key'];
const PROMPT_VERSIONS = [
  'prompt_version',
  'gen_ai.prompt.version',
  'traceloop.prompt.version',
  'llm.prompt_template.version',
];
const PROMPT_VARIABLES = ['traceloop.prompt.template_variables', 'llm.prompt_template.variables'];
const PROMPT_VARIABLE = 'gen_ai.prompt.variable.';

/** Adds the prompt of the registry by the names under which a replay looks for it. */
function addPrompt(attributes: Record<string, unknown>, given: Fields): void {
  const name = firstText([given], PROMPT_NAMES);
  if (name === undefined) return;
  addAttribute(attributes, 'prompt_name', name);
  addAttribute(attributes, 'prompt_version', firstText([given], PROMPT_VERSIONS));
  const key = PROMPT_VARIABLES.find((variables) => given[variables] !== undefined);
  const whole = key === undefined ? undefined : parsedText(given[key]);
  const single = Object.entries(given).flatMap(([variable, value]): [string, unknown][] =>
    variable.startsWith(PROMPT_VARIABLE) ? [[variable.slice(PROMPT_VARIABLE.length), value]] : [],
  );
  if (isFields(whole)) addAttribute(attributes, 'prompt_variables', whole);
  else if (single.length > 0) addAttribute(attributes, 'prompt_variables', Object.fromEntries(single));
}

function tagsOf(given: Fields): string[] {
  const named = TAGS.filter((key) => given[key] !== undefined);
  if (named.length === 0) return [];
  const tags = named.flatMap((key) => textsOf(given[key], TAGS_MAX)).filter((tag) => tag.length <= TAG_LENGTH_MAX);
  return [...new Set(tags)].slice(0, TAGS_MAX);
}

function draftOf(
  kind: SpanKind,
  span: Fields,
  given: Fields,
  attributes: Record<string, unknown>,
  said: Conversation,
): Draft {
  const isCall = kind === 'llm';
  const name =
    typeof span['name'] === 'string' && span['name'] !== '' ? span['name'].slice(0, NAME_LENGTH_MAX) : 'unknown';
  return {
    kind,
    name,
    model: isCall ? otlpModel(given) : '',
    answered_model: isCall ? otlpAnsweredModel(given) : '',
    provider: isCall ? otlpProvider(given) : null,
    messages: said.messages,
    prompt_text: said.prompt,
    response: said.response,
    usage: isCall ? otlpUsage(given) : NO_USAGE,
    answered: said.response !== '' || Object.hasOwn(given, 'embedding.embeddings.0.embedding.vector'),
    attributes,
    steps: [],
    ...(otlpRepeats(given, kind) ? { repeats_usage: true } : {}),
  };
}

/** Returns the span's own attributes except those that became prompt or response or repeat them. */
function attributesOf(
  given: Fields,
  { used, tool_calls, finish_reasons, reasoning, rest }: Conversation,
): Record<string, unknown> {
  const attributes: Record<string, unknown> = {};
  for (const key in given) if (!used.has(key)) addAttribute(attributes, key, given[key]);
  if (tool_calls.length > 0) addAttribute(attributes, 'tool_calls', tool_calls);
  if (finish_reasons.length > 0) addAttribute(attributes, 'gen_ai.response.finish_reasons', finish_reasons);
  if (reasoning !== '') addAttribute(attributes, 'gen_ai.response.reasoning', reasoning);
  if (rest.length > 0) addAttribute(attributes, 'gen_ai.output.messages', rest);
  const firstChunk = given['ai.response.msToFirstChunk'];
  if (typeof firstChunk === 'number') addAttribute(attributes, 'time_to_first_token_ms', firstChunk);
  return attributes;
}

function errorOf(span: Fields): unknown {
  const { message } = fieldsOf(span['status']);
  if (typeof message === 'string' && message !== '') return message;
  return exceptionOf(span)['exception.message'] ?? fieldsOf(span['attributes'])['langfuse.observation.status_message'];
}

interface Parts {
  value: Fields;
  resource: Fields;
  ofResource: Fields;
  span: Fields;
  events: readonly unknown[];
}

/**
 * Adds the span's fields besides its attributes, under another name where an attribute has the same
 * one.
 */
function addEnvelope(attributes: Record<string, unknown>, { value, resource, ofResource, span, events }: Parts): void {
  const add = (name: string, what: unknown) => {
    addAttribute(attributes, Object.hasOwn(attributes, name) ? `otel.${name}` : name, what);
  };
  if (Object.keys(ofResource).length > 0) add('resource', ofResource);
  const scope = fieldsOf(value['scope']);
  if (Object.keys(scope).length > 0) add('scope', scope);
  if (events.length > 0) add('events', events.map(withoutSaid));
  add('links', span['links']);
  const { message } = fieldsOf(span['status']);
  add('status_message', message);
  addAttribute(attributes, 'otel.span_kind', KINDS[Number(span['kind'] ?? 0)] || undefined);
  addAttribute(attributes, 'otel.resource_schema_url', resource['schema_url']);
  addAttribute(attributes, 'otel.trace_state', span['trace_state']);
  for (const key of ['dropped_attributes_count', 'dropped_events_count', 'dropped_links_count'])
    addAttribute(attributes, `otel.${key}`, span[key]);
}

/** Returns a span event without the texts that became prompt and response. */
function withoutSaid(event: unknown): unknown {
  if (!isFields(event) || typeof event['name'] !== 'string' || !isFields(event['attributes'])) return event;
  const said = SAID_BY.test(event['name']) ? SAID : event['name'] === DETAILS ? DETAILS_SAID : null;
  if (said === null) return event;
  return {
    ...event,
    attributes: Object.fromEntries(Object.entries(event['attributes']).filter(([key]) => !said.has(key))),
  };
}
