// Reads the attributes that Langfuse's SDKs write on OpenTelemetry spans. In: the attributes of a
// span. Out: the same attributes with those of the OpenTelemetry conventions beside them (operation,
// model, usage, messages), so that the decoder of OTLP reads the span as any other; the metadata as
// one object; and the outcome and parent that Langfuse's attributes say. What another convention
// already says on the span counts first.
import { addAttribute, isFields, tokenNumber, type Fields } from './draft.ts';
import { parsedList, parsedText, textOf } from './otlp_parts.ts';

const OBSERVATION = 'langfuse.observation.';
const METADATA = /^langfuse\.(?:observation|trace)\.metadata(?:\.(.+))?$/s;

/** Operation of the conventions for each type of observation. */
const OPERATIONS: Readonly<Record<string, string>> = {
  generation: 'chat',
  embedding: 'embeddings',
  tool: 'execute_tool',
  agent: 'invoke_agent',
  retriever: 'retrieval',
  chain: 'invoke_workflow',
};
/** Attributes by which another convention says what a span is. */
const CLASSIFIED = ['gen_ai.operation.name', 'ai.operationId', 'openinference.span.kind', 'traceloop.span.kind'];

export interface LangfuseReading {
  attributes: Fields;
  /** True when the observation's level is ERROR. */
  failed: boolean;
  /** True when the span is the first of its trace that is exported, whatever its parent is. */
  is_root: boolean;
}

/** Returns the reading of a span's attributes. */
export function readLangfuse(given: Fields): LangfuseReading {
  const attributes = withoutMetadata(given);
  const text = (key: string): string => textOf(given[`${OBSERVATION}${key}`]);
  const type = text('type').toLowerCase();
  const isCall = type === 'generation' || type === 'embedding' || (type === '' && text('model.name') !== '');
  if (!CLASSIFIED.some((key) => Object.hasOwn(given, key)))
    addAttribute(attributes, 'gen_ai.operation.name', OPERATIONS[type === '' && isCall ? 'generation' : type]);
  if (isCall) addCall(attributes, given);
  addTexts(attributes, isCall);
  const [name, version] = [text('prompt.name'), text('prompt.version')];
  if (name !== '') addAttribute(attributes, 'prompt_name', name);
  if (version !== '') addAttribute(attributes, 'prompt_version', version);
  return {
    attributes,
    failed: text('level').toUpperCase() === 'ERROR',
    is_root: isTrue(given['langfuse.internal.is_app_root']) || isTrue(given['langfuse.internal.as_root']),
  };
}

const isTrue = (value: unknown): boolean => value === true || value === 'true';

/** Returns a copy of the attributes in which the metadata is one object. */
function withoutMetadata(given: Fields): Record<string, unknown> {
  const attributes: Record<string, unknown> = {};
  const metadata: Record<string, unknown> = {};
  for (const [key, value] of Object.entries(given)) {
    const found = METADATA.exec(key);
    if (found === null) addAttribute(attributes, key, value);
    else addMetadata(metadata, found[1], parsedText(value));
  }
  if (Object.keys(metadata).length > 0) addAttribute(attributes, 'metadata', metadata);
  return attributes;
}

function addMetadata(metadata: Record<string, unknown>, key: string | undefined, value: unknown): void {
  if (key !== undefined) addAttribute(metadata, key, value);
  else if (isFields(value)) for (const [name, one] of Object.entries(value)) addAttribute(metadata, name, one);
  else addAttribute(metadata, 'value', value);
}

/** Adds the model, usage and cost of a call. */
function addCall(attributes: Record<string, unknown>, given: Fields): void {
  addAttribute(attributes, 'gen_ai.request.model', given[`${OBSERVATION}model.name`]);
  const usage = parsedText(given[`${OBSERVATION}usage_details`]);
  if (isFields(usage)) {
    const counted = usageOf(usage);
    for (const [key, tokens] of Object.entries(counted)) addAttribute(attributes, key, tokens ?? undefined);
  }
  const cost = parsedText(given[`${OBSERVATION}cost_details`]);
  if (isFields(cost)) addAttribute(attributes, 'cost_usd', costOf(cost));
}

/** Returns the total cost; undefined when the details name none. */
function costOf(details: Fields): number | undefined {
  const { total, ...parts } = details;
  if (isAmount(total)) return total;
  const amounts = Object.values(parts).filter(isAmount);
  return amounts.length === 0 ? undefined : amounts.reduce((sum, amount) => sum + amount, 0);
}

const isAmount = (value: unknown): value is number => typeof value === 'number' && Number.isFinite(value) && value >= 0;

const INPUTS = ['input', 'input_tokens', 'prompt_tokens', 'promptTokens', 'prompt'];
const OUTPUTS = ['output', 'output_tokens', 'completion_tokens', 'completionTokens', 'completion'];
const INPUT_PART = /^input_|^prompt_|^cache_|cached/;
const OUTPUT_PART = /^output_|^completion_/;
const WRITTEN = /cache_?(?:creation|write)/;
const CACHED = /cache/;

/**
 * Returns the usage as the conventions name it. Langfuse's details are disjoint: `input` holds
 * neither the cached nor the audio tokens beside it. Details whose total is input plus output count
 * the parts within them, as the vendors do.
 */
function usageOf(details: Fields): Record<string, number | null> {
  const numbers = Object.entries(details).flatMap(([key, value]): [string, number][] => {
    const tokens = tokenNumber(value);
    return tokens === null ? [] : [[key, tokens]];
  });
  const main = (names: readonly string[]): number | undefined => {
    const key = names.find((name) => numbers.some(([given]) => given === name));
    return numbers.find(([given]) => given === key)?.[1];
  };
  const [input, output] = [main(INPUTS), main(OUTPUTS)];
  const sumOf = (isPart: (key: string) => boolean): number =>
    numbers.reduce((sum, [key, tokens]) => (isPart(key) ? sum + tokens : sum), 0);
  const named = new Set([...INPUTS, ...OUTPUTS, 'total', 'total_tokens', 'totalTokens']);
  const ofInput = (key: string): boolean => !named.has(key) && INPUT_PART.test(key) && !OUTPUT_PART.test(key);
  const ofOutput = (key: string): boolean => !named.has(key) && OUTPUT_PART.test(key);
  const total = main(['total', 'total_tokens', 'totalTokens']);
  const isInclusive = total !== undefined && total === (input ?? 0) + (output ?? 0);
  const whole = (amount: number | undefined, isPart: (key: string) => boolean): number | null => {
    const parts = isInclusive ? 0 : sumOf(isPart);
    return amount === undefined && parts === 0 ? null : (amount ?? 0) + parts;
  };
  const positive = (tokens: number): number | null => (tokens > 0 ? tokens : null);
  return {
    'gen_ai.usage.input_tokens': whole(input, ofInput),
    'gen_ai.usage.output_tokens': whole(output, ofOutput),
    'gen_ai.usage.cache_read.input_tokens': positive(
      sumOf((key) => ofInput(key) && CACHED.test(key) && !WRITTEN.test(key)),
    ),
    'gen_ai.usage.cache_write.input_tokens': positive(sumOf((key) => ofInput(key) && WRITTEN.test(key))),
    'gen_ai.usage.audio.input_tokens': positive(sumOf((key) => ofInput(key) && key.includes('audio'))),
    'gen_ai.usage.audio.output_tokens': positive(sumOf((key) => ofOutput(key) && key.includes('audio'))),
    'gen_ai.usage.reasoning.output_tokens': positive(sumOf((key) => ofOutput(key) && key.includes('reasoning'))),
  };
}

/** Moves input and output to the attributes that hold the prompt and the answer. */
function addTexts(attributes: Record<string, unknown>, isCall: boolean): void {
  for (const [side, key, messages] of [
    ['input', 'input.value', 'gen_ai.input.messages'],
    ['output', 'output.value', 'gen_ai.output.messages'],
  ] as const) {
    const own = `${OBSERVATION}${side}`;
    const value = attributes[own];
    if (value === undefined) continue;
    Reflect.deleteProperty(attributes, own);
    const said = isCall ? messagesOf(value) : null;
    if (said === null) addAttribute(attributes, key, value);
    else addAttribute(attributes, messages, said);
    // A span that another convention describes too keeps what that one says.
    if (!Object.hasOwn(attributes, key) && !Object.hasOwn(attributes, messages)) attributes[own] = value;
  }
}

/** Returns messages given as a list, as one message, or below `messages`; null for anything else. */
function messagesOf(value: unknown): unknown[] | null {
  const parsed = parsedText(value);
  if (isFields(parsed)) {
    const inner = parsedList(parsed['messages']);
    if (inner !== null && inner.every(isMessage)) return inner;
    return isMessage(parsed) ? [parsed] : null;
  }
  const list = parsedList(value);
  return list !== null && list.length > 0 && list.every(isMessage) ? list : null;
}

const isMessage = (value: unknown): boolean =>
  isFields(value) && typeof value['role'] === 'string' && ('content' in value || 'tool_calls' in value);
