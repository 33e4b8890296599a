// Understands the log records of coding agents: Claude Code, Codex and Gemini CLI. They report model
// calls and tools as log records instead of spans. In: a record's name and attributes. Out: what it
// is, with model, usage, texts and outcome, and the attributes that became these. The names were
// recorded from Claude Code 2.1, Codex 0.169 and Gemini CLI 0.61 (test/data/coding_agents.json);
// those of failed calls and tools of Codex and Gemini CLI are from their source.
import type { SpanKind, TraceOutcome } from '../traces/span.ts';
import { isFields, NO_USAGE, tokenNumber, type Fields, type ReportedUsage } from './draft.ts';
import { firstText, parsedText, textOf } from './otlp_parts.ts';

export interface AgentRecord {
  /** The agent, in agent_id where the record names none. */
  agent: string;
  kind: SpanKind;
  /** Name of the span; undefined for the record's own. */
  name?: string | undefined;
  model: string;
  provider: string | null;
  usage: ReportedUsage;
  prompt: string;
  response: string;
  outcome: TraceOutcome;
  /** Id of the request at the vendor, by which another record of the same call is recognized. */
  request_id?: string | undefined;
  /** Attributes that became the texts. */
  used: readonly string[];
}

const AGENTS: Readonly<Record<string, { agent: string; provider: string }>> = {
  claude_code: { agent: 'claude-code', provider: 'anthropic' },
  codex: { agent: 'codex', provider: 'openai' },
  gemini_cli: { agent: 'gemini-cli', provider: 'google' },
};

const FAILED: ReadonlySet<unknown> = new Set([false, 'false']);
const DIGITS = /^\d{1,15}$/;
const TIMEOUT = /time[-_ ]?d?[-_ ]?out|deadline/i;

/** Returns what a record says; null for a record of anything else than a coding agent. */
export function agentRecordOf(name: string, attributes: Fields): AgentRecord | null {
  const dot = name.indexOf('.');
  const known = dot > 0 && Object.hasOwn(AGENTS, name.slice(0, dot)) ? AGENTS[name.slice(0, dot)] : undefined;
  if (known === undefined) return null;
  const said = saidBy(name, attributes);
  const isCall = said.kind === 'llm';
  return {
    agent: known.agent,
    kind: 'event',
    outcome: 'success',
    usage: NO_USAGE,
    prompt: '',
    response: '',
    used: [],
    ...said,
    model: isCall ? textOf(attributes['model']) : '',
    provider: isCall ? known.provider : null,
  };
}

function saidBy(name: string, attributes: Fields): Partial<AgentRecord> {
  switch (name) {
    case 'claude_code.user_prompt':
    case 'codex.user_prompt':
    case 'gemini_cli.user_prompt':
      return texts(attributes, ['prompt'], []);
    case 'claude_code.assistant_response':
      return texts(attributes, [], ['response']);
    case 'claude_code.api_request':
      return { kind: 'llm', usage: claudeUsage(attributes), request_id: firstText([attributes], ['request_id']) };
    case 'claude_code.api_error':
    case 'gemini_cli.api_error':
      return { kind: 'llm', outcome: failureOf(attributes), request_id: firstText([attributes], ['request_id']) };
    case 'codex.sse_event':
      return completedBy(attributes) ? { kind: 'llm', usage: codexUsage(attributes) } : {};
    case 'gemini_cli.api_request':
      return texts(attributes, ['request_text'], []);
    case 'gemini_cli.api_response':
      return { kind: 'llm', usage: geminiUsage(attributes), ...geminiAnswer(attributes) };
    case 'claude_code.tool_result':
      return toolResult(attributes, ['tool_name'], ['tool_input', 'tool_parameters'], ['tool_output', 'error']);
    case 'codex.tool_result':
      return toolResult(attributes, ['tool_name'], ['arguments'], ['output']);
    case 'gemini_cli.tool_call':
      return toolResult(attributes, ['function_name'], ['function_args'], ['error']);
    default:
      return {};
  }
}

/** Returns the texts of the first of these attributes that are there. */
function texts(attributes: Fields, prompts: readonly string[], responses: readonly string[]) {
  const prompt = prompts.find((key) => textOf(attributes[key]) !== '');
  const response = responses.find((key) => textOf(attributes[key]) !== '');
  return {
    prompt: prompt === undefined ? '' : textOf(attributes[prompt]),
    response: response === undefined ? '' : textOf(attributes[response]),
    used: [prompt, response].filter((key) => key !== undefined),
  };
}

function toolResult(
  attributes: Fields,
  names: readonly string[],
  inputs: readonly string[],
  outputs: readonly string[],
): Partial<AgentRecord> {
  return {
    kind: 'tool',
    name: firstText([attributes], names),
    outcome: FAILED.has(attributes['success']) ? failureOf(attributes) : 'success',
    ...texts(attributes, inputs, outputs),
  };
}

function failureOf(attributes: Fields): TraceOutcome {
  const said = ['error.type', 'error_type', 'error', 'error.message', 'status_code'].map((key) => attributes[key]);
  return said.some((text) => typeof text === 'string' && TIMEOUT.test(text.slice(0, 1000))) ? 'timeout' : 'error';
}

/** Returns a count, which Codex sends as text; 0 where it is missing. */
function tokens(attributes: Fields, key: string): number {
  const value = attributes[key];
  return tokenNumber(typeof value === 'string' && DIGITS.test(value) ? Number(value) : value) ?? 0;
}

/** Returns the usage in attributes of Claude Code, which counts cached tokens beside the input. */
export function claudeUsage(attributes: Fields): ReportedUsage {
  const cached = tokens(attributes, 'cache_read_tokens');
  const written = tokens(attributes, 'cache_creation_tokens');
  return {
    ...NO_USAGE,
    input_tokens: tokens(attributes, 'input_tokens') + cached + written,
    output_tokens: tokens(attributes, 'output_tokens'),
    cached_input_tokens: cached,
    cache_write_tokens: written,
  };
}

const completedBy = (attributes: Fields): boolean =>
  attributes['event.kind'] === 'response.completed' && attributes['input_token_count'] !== undefined;

function codexUsage(attributes: Fields): ReportedUsage {
  return {
    ...NO_USAGE,
    input_tokens: tokens(attributes, 'input_token_count'),
    output_tokens: tokens(attributes, 'output_token_count'),
    cached_input_tokens: tokens(attributes, 'cached_token_count'),
    cache_write_tokens: tokens(attributes, 'cache_write_token_count'),
    reasoning_tokens: tokens(attributes, 'reasoning_token_count'),
  };
}

/** Gemini counts thoughts beside the answer, and the results of tools beside the prompt. */
function geminiUsage(attributes: Fields): ReportedUsage {
  const reasoning = tokens(attributes, 'thoughts_token_count');
  return {
    ...NO_USAGE,
    input_tokens: tokens(attributes, 'input_token_count') + tokens(attributes, 'tool_token_count'),
    output_tokens: tokens(attributes, 'output_token_count') + reasoning,
    cached_input_tokens: tokens(attributes, 'cached_content_token_count'),
    reasoning_tokens: reasoning,
  };
}

/** The answer of Gemini CLI is the JSON of the API's chunks. */
function geminiAnswer(attributes: Fields): Partial<AgentRecord> {
  const raw = attributes['response_text'];
  if (typeof raw !== 'string' || raw === '') return {};
  const parsed = parsedText(raw);
  const chunks = Array.isArray(parsed) ? (parsed as unknown[]) : [parsed];
  const answer = chunks.map(chunkText).join('');
  const first = chunks.find((chunk) => isFields(chunk) && typeof chunk['responseId'] === 'string');
  return {
    response: answer === '' ? raw : answer,
    used: ['response_text'],
    request_id: isFields(first) ? textOf(first['responseId']) : undefined,
  };
}

function chunkText(chunk: unknown): string {
  const candidates = isFields(chunk) && Array.isArray(chunk['candidates']) ? (chunk['candidates'] as unknown[]) : [];
  const content = isFields(candidates[0]) ? candidates[0]['content'] : undefined;
  const parts = isFields(content) && Array.isArray(content['parts']) ? (content['parts'] as unknown[]) : [];
  return parts
    .map((part) => (isFields(part) && part['thought'] !== true && typeof part['text'] === 'string' ? part['text'] : ''))
    .join('');
}
