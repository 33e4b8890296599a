// Translates attributes that only one vendor writes on OpenTelemetry spans: those of Langfuse,
// LangSmith, Google's Agent Development Kit, Claude Code and one package of Traceloop. In: the
// attributes and the name of a span. Out: the same attributes with those of the OpenTelemetry
// conventions beside them, so that the decoder of OTLP reads the span as any other and repricing
// finds its usage. What the conventions already say on the span counts first. A span without such
// attributes is returned as it is.
import { attributesOfRun } from '../langsmith/runs.ts';
import { claudeUsage } from './coding_agents.ts';
import { addAttribute, isFields, tokenNumber, type Fields } from './draft.ts';
import { type LangfuseReading, readLangfuse } from './langfuse.ts';
import { parsedList, parsedText, textOf } from './otlp_parts.ts';

const LANGFUSE = 'langfuse.';
const LANGSMITH = 'langsmith.';
const LANGSMITH_METADATA = 'langsmith.metadata.';
const ADK = 'gcp.vertex.agent.';
const CLAUDE_CODE = 'claude_code.';
const TRACELOOP_ANTHROPIC = '@traceloop/instrumentation-anthropic';

/**
 * Returns the reading of a span's attributes.
 * @param name name of the span
 * @param scope name of its instrumentation scope
 */
export function readDialects(given: Fields, name: string, scope: string): LangfuseReading {
  const found = dialectOf(given);
  if (found === LANGFUSE) return readLangfuse(given);
  const attributes =
    found === LANGSMITH
      ? ofLangsmith(given)
      : found === ADK
        ? ofAdk(given)
        : name.startsWith(CLAUDE_CODE)
          ? ofClaudeCode(given, name)
          : scope === TRACELOOP_ANTHROPIC
            ? withWholeInput(given)
            : given;
  return { attributes, failed: false, is_root: false };
}

/** Returns the prefix of the vendor whose attributes the span has; an empty text for none. */
function dialectOf(given: Fields): string {
  for (const key of Object.keys(given)) {
    if (key.startsWith('lang')) {
      if (key.startsWith(LANGFUSE)) return LANGFUSE;
      if (key.startsWith(LANGSMITH)) return LANGSMITH;
    } else if (key.startsWith(ADK)) return ADK;
  }
  return '';
}

/** Reads a span of LangSmith's OpenTelemetry exporter as the run that it was. */
function ofLangsmith(given: Fields): Fields {
  const attributes: Record<string, unknown> = {};
  const metadata: Record<string, unknown> = {};
  for (const key in given) {
    if (key.startsWith(LANGSMITH_METADATA)) addAttribute(metadata, key.slice(LANGSMITH_METADATA.length), given[key]);
    else if (!RUN_FIELDS.has(key)) addAttribute(attributes, key, given[key]);
  }
  const usage = parsedText(given['langsmith.usage_metadata']);
  const run = attributesOfRun({
    run_type: textOf(given['langsmith.span.kind']).toLowerCase(),
    inputs: parsedText(given['gen_ai.prompt']),
    outputs: parsedText(given['gen_ai.completion']),
    extra: { metadata: isFields(usage) ? { ...metadata, usage_metadata: usage } : metadata },
    tags: given['langsmith.span.tags'],
    session_name: given['langsmith.trace.session_name'],
  });
  for (const key in run) addAttribute(attributes, key, key === 'metadata' ? metadata : run[key]);
  return attributes;
}
/** Attributes that become others. */
const RUN_FIELDS = new Set([
  'langsmith.usage_metadata',
  'langsmith.span.tags',
  'langsmith.trace.session_name',
  'gen_ai.prompt',
  'gen_ai.completion',
]);

const ADK_REQUEST = 'gcp.vertex.agent.llm_request';
const ADK_RESPONSE = 'gcp.vertex.agent.llm_response';

/** Reads the request and the answer that Google's ADK writes as JSON in the shape of Gemini's API. */
function ofAdk(given: Fields): Fields {
  const attributes: Record<string, unknown> = { ...given };
  const request = parsedText(given[ADK_REQUEST]);
  if (isFields(request) && Array.isArray(request['contents'])) {
    const { contents, config, ...rest } = request;
    const { system_instruction, ...settings } = isFields(config) ? config : {};
    const messages = (contents as unknown[]).map(messageOf);
    if (system_instruction !== undefined) messages.unshift({ role: 'system', parts: partsOf(system_instruction) });
    addAttribute(attributes, 'gen_ai.input.messages', messages);
    attributes[ADK_REQUEST] = { ...rest, config: settings };
  }
  const response = parsedText(given[ADK_RESPONSE]);
  if (isFields(response) && isFields(response['content'])) {
    const { content, ...rest } = response;
    addAttribute(attributes, 'gen_ai.output.messages', [messageOf(content)]);
    attributes[ADK_RESPONSE] = rest;
    addUsage(attributes, rest['usage_metadata']);
  }
  return attributes;
}

/** Adds the parts of the usage that older versions leave out of the conventions' attributes. */
function addUsage(attributes: Record<string, unknown>, usage: unknown): void {
  if (!isFields(usage)) return;
  const [answer, thoughts] = [usage['candidates_token_count'], usage['thoughts_token_count']].map(tokenNumber);
  // Gemini counts thoughts beside the answer, and bills both as output.
  const output = 'gen_ai.usage.output_tokens';
  if (thoughts && (attributes[output] === undefined || attributes[output] === answer))
    attributes[output] = (answer ?? 0) + thoughts;
  addAttribute(attributes, 'gen_ai.usage.input_tokens', usage['prompt_token_count']);
  addAttribute(attributes, output, answer);
  addAttribute(attributes, 'gen_ai.usage.cache_read.input_tokens', usage['cached_content_token_count']);
  addAttribute(attributes, 'gen_ai.usage.reasoning.output_tokens', thoughts);
}

function messageOf(content: unknown): unknown {
  const { role, parts } = isFields(content) ? content : { role: 'user', parts: content };
  return { role: role === 'model' ? 'assistant' : (role ?? 'user'), parts: partsOf(parts) };
}

/** Returns parts as the conventions name them. */
function partsOf(value: unknown): unknown[] {
  const given = isFields(value) && Array.isArray(value['parts']) ? (value['parts'] as unknown[]) : value;
  return (parsedList(given) ?? [given]).map((part) => {
    if (typeof part === 'string') return { type: 'text', content: part };
    if (!isFields(part)) return part;
    const { text, thought, function_call: call, function_response: result } = part;
    if (typeof text === 'string') return { type: thought === true ? 'reasoning' : 'text', content: text };
    if (isFields(call)) return { type: 'tool_call', id: call['id'], name: call['name'], arguments: call['args'] };
    if (isFields(result)) return { type: 'tool_call_response', id: result['id'], response: result['response'] };
    return part;
  });
}

/** Reads the spans of Claude Code, whose names of tokens and texts are its own. */
function ofClaudeCode(given: Fields, name: string): Fields {
  const attributes: Record<string, unknown> = { ...given };
  if (name === 'claude_code.llm_request') {
    const { input_tokens, output_tokens, cached_input_tokens, cache_write_tokens } = claudeUsage(given);
    addAttribute(attributes, INPUT, input_tokens);
    addAttribute(attributes, 'gen_ai.usage.output_tokens', output_tokens);
    addAttribute(attributes, 'gen_ai.usage.cache_read.input_tokens', cached_input_tokens);
    addAttribute(attributes, 'gen_ai.usage.cache_write.input_tokens', cache_write_tokens);
  } else if (name === 'claude_code.interaction' && typeof given['user_prompt'] === 'string') {
    Reflect.deleteProperty(attributes, 'user_prompt');
    addAttribute(attributes, 'input.value', given['user_prompt']);
  }
  return attributes;
}

const INPUT = 'gen_ai.usage.input_tokens';
const CACHED = ['gen_ai.usage.cache_read.input_tokens', 'gen_ai.usage.cache_creation.input_tokens'];

/** Counts cached tokens within the input, as the conventions do; this instrumentation leaves them out. */
function withWholeInput(given: Fields): Fields {
  const input = tokenNumber(given[INPUT]);
  if (input === null) return given;
  return { ...given, [INPUT]: CACHED.reduce((sum, key) => sum + (tokenNumber(given[key]) ?? 0), input) };
}
