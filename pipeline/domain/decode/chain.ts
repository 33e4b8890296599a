// Decoder of the format `chain`: one run of a LangChain-style chain. It becomes one LLM span named
// after the chain, with one tool child for each intermediate step [action, observation]: the action
// is the prompt, the observation the response.
import type { ChainEvent } from '../../../schemas/formats/chain.ts';
import { chainStepSpanId } from '../traces/ids.ts';
import { UNPRICED } from '../pricing/pricing.ts';
import type { Span } from '../traces/span.ts';
import { openAiUsage } from './chatcompletion.ts';
import {
  addAll,
  addAttribute,
  addOthers,
  EVENT_FIELDS,
  isFields,
  NO_USAGE,
  ownAttributes,
  type Draft,
} from './draft.ts';
import { promptWithin } from './truncate.ts';

const CHAIN_FIELDS = new Set([...EVENT_FIELDS, 'chain_name', 'intermediate_steps']);
const REQUEST_FIELDS = new Set(['model', 'messages', 'tools']);
const RESPONSE_FIELDS = new Set(['generations', 'llm_output', 'error']);
const OUTPUT_FIELDS = new Set(['token_usage', 'model_name']);
const USAGE_FIELDS = new Set(['prompt_tokens', 'completion_tokens', 'total_tokens']);
const STEP_NAME_MAX = 80;
/** A tool's name, alone or before its input: `search`, `search(query)`, `Search: query`. */
const TOOL_NAME = /^\s*([A-Za-z_][\w.-]{0,79})\s*(?:[([{:|]|$)/;

export function decodeChain(event: ChainEvent): Draft {
  const { request, response } = event;
  const attributes = ownAttributes(event);
  addOthers(attributes, event, CHAIN_FIELDS, '');
  addOthers(attributes, request, REQUEST_FIELDS, 'gen_ai.request.');
  addAttribute(attributes, 'gen_ai.tool.definitions', request['tools']);
  const output = response?.llm_output;
  const usage = output?.token_usage;
  const answeredModel = output?.['model_name'];
  if (output != null) addOthers(attributes, output, OUTPUT_FIELDS, 'gen_ai.response.');
  if (usage != null) addOthers(attributes, usage, USAGE_FIELDS, 'gen_ai.usage.');
  addAttribute(attributes, 'gen_ai.response.model', answeredModel);
  return {
    kind: 'llm',
    name: event.chain_name,
    model: request.model,
    answered_model: typeof answeredModel === 'string' ? answeredModel : '',
    provider: null,
    messages: request.messages,
    prompt_text: '',
    response: response == null ? '' : readGenerations(response, attributes),
    usage: usage == null ? NO_USAGE : openAiUsage(usage),
    answered: response?.generations != null,
    attributes,
    steps: event.intermediate_steps ?? [],
  };
}

/** Adds the fields of the generations to the attributes and returns their text. */
function readGenerations(response: NonNullable<ChainEvent['response']>, attributes: Record<string, unknown>): string {
  const texts: string[] = [];
  const reasons: string[] = [];
  const toolCalls: unknown[] = [];
  for (const generation of (response.generations ?? []).flat()) {
    if (generation.text != null && generation.text !== '') texts.push(generation.text);
    const reason = generation.generation_info?.['finish_reason'];
    if (typeof reason === 'string') reasons.push(reason);
    const message = isFields(generation['message']) ? generation['message'] : {};
    const calls = message['tool_calls'] ?? (isFields(message['kwargs']) ? message['kwargs']['tool_calls'] : undefined);
    if (Array.isArray(calls)) addAll(toolCalls, calls as unknown[]);
  }
  if (toolCalls.length > 0) addAttribute(attributes, 'tool_calls', toolCalls);
  if (reasons.length > 0) addAttribute(attributes, 'gen_ai.response.finish_reasons', reasons);
  addAttribute(attributes, 'error', response['error']);
  addOthers(attributes, response, RESPONSE_FIELDS, 'gen_ai.response.');
  return texts.join('\n');
}

/**
 * Returns the tool children of a chain's span. Steps have no times of their own: they share the
 * chain's duration evenly, in order. They carry no storage, tokens or cost, so that the event is
 * counted once.
 * @param body compact JSON of the event
 * @param tokensMax maximum tokens of a prompt; null for no limit
 */
export function stepSpans(steps: Draft['steps'], chain: Span, body: string, tokensMax: number | null): Span[] {
  const share = (chain.ended_at - chain.started_at) / Math.max(1, steps.length);
  return steps.map(([action, observation], index) => {
    const prompt = promptWithin({ messages: null, prompt_text: action }, tokensMax);
    return {
      ...chain,
      span_id: chainStepSpanId(body, index),
      parent_span_id: chain.span_id,
      started_at: chain.started_at + Math.floor(share * index),
      ended_at: chain.started_at + Math.floor(share * (index + 1)),
      kind: 'tool',
      name: stepName(action).toWellFormed(),
      model: '',
      provider: '',
      outcome: 'success',
      tags: [],
      input_tokens: 0,
      output_tokens: 0,
      cached_input_tokens: 0,
      first_token_ms: 0,
      cache_write_tokens: 0,
      reasoning_tokens: 0,
      prompt_name: '',
      prompt_version: '',
      ...UNPRICED,
      attributes: { step_index: index, times_estimated: true, ...(prompt.truncated ? { prompt_truncated: true } : {}) },
      prompt: prompt.text.toWellFormed(),
      response: observation.toWellFormed(),
      storage_bytes: 0,
      sandbox_seconds: 0,
    };
  });
}

/**
 * Returns the tool that an action names, in its JSON (`{"tool": …}`) or as its first word, else
 * `tool`. A text without a name is not used as one: it is a prompt, which redaction and retention
 * apply to, whereas names outlive both.
 */
function stepName(action: string): string {
  return TOOL_NAME.exec(action)?.[1] ?? (action.startsWith('{') ? nameInJson(action) : undefined) ?? 'tool';
}

function nameInJson(action: string): string | undefined {
  try {
    const parsed: unknown = JSON.parse(action);
    if (!isFields(parsed)) return undefined;
    const name = parsed['tool'] ?? parsed['name'] ?? parsed['action'];
    return typeof name === 'string' && name !== '' ? name.slice(0, STEP_NAME_MAX) : undefined;
  } catch {
    // The text is not JSON and names no tool.
    return undefined;
  }
}
