// Decoder of the format `otlp` for log records. In: the body in the ingest log, {resource, scope,
// log}. Out: the fields that all formats have, and a draft. A record is an event below the span that
// it names; records of coding agents are model calls and tools. The messages of the GenAI
// conventions become prompt and response of the record; readers show them as those of its span where
// the span has none (api/telemetry/said). Any other body becomes the response, so that it is
// searched, redacted and kept as texts are.
import type { Refusal } from '../../../schemas/formats/refusal.ts';
import { NAME_LENGTH_MAX } from '../../../schemas/formats/fields.ts';
import { type AgentRecord, agentRecordOf } from './coding_agents.ts';
import { addAttribute, isFields, NO_USAGE, type Draft, type Fields } from './draft.ts';
import { otlpLogEvent } from './otlp_log_event.ts';
import { CHOICE_RECORD, DETAILS_RECORD, LOG_SESSIONS, LOG_USERS, logName, MESSAGE_RECORD } from './otlp_log_names.ts';
import { conversationOf, type Conversation } from './otlp_messages.ts';
import { fieldsOf, firstText, textOf } from './otlp_parts.ts';

const DURATION_MAX_MS = 31 * 86_400_000;
const DIGITS = /^\d{1,12}(?:\.\d+)?$/;
/** Parts of a message that become its texts. */
const SAID = new Set(['content', 'message', 'tool_calls', 'parts']);
const DETAILS_SAID = new Set(['gen_ai.system_instructions', 'gen_ai.input.messages', 'gen_ai.output.messages']);

/**
 * Reads a log record of the ingest log.
 * @param receivedAt milliseconds since the epoch
 */
export function readOtlpLog(value: Fields, receivedAt: number): { ok: true; event: Fields; draft: Draft } | Refusal {
  const log = fieldsOf(value['log']);
  const resource = fieldsOf(value['resource']);
  const ofResource = fieldsOf(resource['attributes']);
  const checked = otlpLogEvent(log, ofResource, receivedAt);
  if (!checked.ok) return checked;
  const given = fieldsOf(log['attributes']);
  const name = logName(log);
  const agent = agentRecordOf(name, given);
  const sources = [given, ofResource];
  const event = {
    ...checked.event,
    ...(agent === null ? {} : { duration_ms: durationOf(given), outcome: agent.outcome }),
    session_id: firstText(sources, LOG_SESSIONS),
    user_id: firstText(sources, LOG_USERS),
  };
  const draft = agent !== null ? agentDraft(name, log, given, agent) : recordDraft(name, log, given);
  addAttribute(draft.attributes, 'agent_id', firstText(sources, ['agent_id', 'gen_ai.agent.id']) ?? agent?.agent);
  for (const key of ['department', 'realm']) addAttribute(draft.attributes, key, ofResource[key]);
  addEnvelope(draft.attributes, value, resource, log);
  return { ok: true, event, draft: { ...draft, resource: ofResource } };
}

/** Returns the milliseconds that a record says it took; 0 where it does not. */
function durationOf(attributes: Fields): number {
  const given = attributes['duration_ms'];
  const duration = typeof given === 'string' && DIGITS.test(given) ? Number(given) : given;
  return typeof duration === 'number' && duration >= 0 && duration <= DURATION_MAX_MS ? Math.round(duration) : 0;
}

const named = (name: string): string => (name === '' ? 'log' : name.slice(0, NAME_LENGTH_MAX));

function agentDraft(name: string, log: Fields, given: Fields, agent: AgentRecord): Draft {
  const used = new Set(agent.used);
  const attributes: Record<string, unknown> = {};
  for (const key in given) if (!used.has(key)) addAttribute(attributes, key, given[key]);
  addAttribute(attributes, 'event.name', name);
  if (agent.kind === 'llm') addAttribute(attributes, 'gen_ai.response.id', agent.request_id);
  if (agent.outcome !== 'success')
    addAttribute(attributes, 'error_message', firstText([given], ['error.message', 'error', 'output']));
  if (log['body'] !== name) addAttribute(attributes, 'body', log['body']);
  const isCall = agent.kind === 'llm';
  return {
    kind: agent.kind,
    name: named(agent.name ?? name),
    model: agent.model,
    answered_model: '',
    provider: agent.provider,
    messages: isCall && agent.prompt !== '' ? [{ role: 'user', content: agent.prompt }] : null,
    prompt_text: agent.prompt,
    response: agent.response,
    usage: agent.usage,
    answered: false,
    attributes,
    steps: [],
    // A cost stands beside tokens in the record of the call alone.
    ...(isCall ? {} : { repeats_usage: true }),
  };
}

function recordDraft(name: string, log: Fields, given: Fields): Draft {
  const isMessage = MESSAGE_RECORD.test(name) || name === CHOICE_RECORD || name === DETAILS_RECORD;
  const said = isMessage ? messageOf(name, log, given) : null;
  const attributes: Record<string, unknown> = {};
  for (const key in given) if (said === null || !DETAILS_SAID.has(key)) addAttribute(attributes, key, given[key]);
  if (said !== null) {
    addSaid(attributes, said);
    addAttribute(attributes, 'body', restOf(log['body']));
  }
  return {
    kind: 'event',
    name: named(name),
    model: '',
    answered_model: '',
    provider: null,
    messages: said?.messages ?? null,
    prompt_text: said?.prompt ?? '',
    response: said === null ? textOf(log['body']) : said.response,
    usage: NO_USAGE,
    answered: false,
    attributes,
    steps: [],
    repeats_usage: true,
    record: said === null ? 'line' : 'message',
  };
}

/** Returns the messages of a record, which are in its body, its attributes, or both. */
function messageOf(name: string, { body }: Fields, given: Fields): Conversation {
  const inBody = typeof body === 'string' ? { content: body } : fieldsOf(body);
  return conversationOf({}, [{ name, attributes: { ...given, ...inBody } }], false);
}

function addSaid(attributes: Record<string, unknown>, said: Conversation): void {
  if (said.tool_calls.length > 0) addAttribute(attributes, 'tool_calls', said.tool_calls);
  if (said.finish_reasons.length > 0) addAttribute(attributes, 'gen_ai.response.finish_reasons', said.finish_reasons);
  if (said.reasoning !== '') addAttribute(attributes, 'gen_ai.response.reasoning', said.reasoning);
  if (said.rest.length > 0) addAttribute(attributes, 'gen_ai.output.messages', said.rest);
}

/** Returns a message without its texts; undefined where nothing is left. */
function restOf(body: unknown): unknown {
  if (!isFields(body)) return undefined;
  const rest = Object.entries(body).filter(([key]) => !SAID.has(key) && !DETAILS_SAID.has(key));
  return rest.length === 0 ? undefined : Object.fromEntries(rest);
}

/** Adds the fields of a record besides its attributes. */
function addEnvelope(attributes: Record<string, unknown>, value: Fields, resource: Fields, log: Fields): void {
  const ofResource = fieldsOf(resource['attributes']);
  if (Object.keys(ofResource).length > 0) addAttribute(attributes, 'resource', ofResource);
  const scope = fieldsOf(value['scope']);
  if (Object.keys(scope).length > 0) addAttribute(attributes, 'scope', scope);
  for (const key of ['severity_text', 'severity_number', 'event_name', 'dropped_attributes_count'])
    addAttribute(attributes, `otel.${key}`, log[key]);
  addAttribute(attributes, 'otel.trace_id', log['trace_id']);
  addAttribute(attributes, 'otel.span_id', log['span_id']);
}
