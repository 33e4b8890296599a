// Runs of LangSmith as spans. In: the fields of a run, or its post and its patches. Out: a span with
// the attributes of the OpenTelemetry conventions and LangSmith's own fields. LangSmith's clients
// send the end of a run without its inputs, so a post waits for its patch; pipeline/langfuse folds
// both. Pure.
import { hash } from 'node:crypto';
import { isoMillis } from '../../../schemas/formats/times.ts';
import { type Folded, type LoggedSpan, nanosOf, type PartItem } from '../traces/logged_span.ts';

export type Run = Record<string, unknown>;

const STATUS_ERROR = 2;
const OPERATIONS: Readonly<Record<string, string>> = {
  llm: 'chat',
  tool: 'execute_tool',
  retriever: 'retrieval',
  embedding: 'embeddings',
  chain: 'invoke_workflow',
};
const SESSIONS = ['session_id', 'thread_id', 'conversation_id'];

const isRun = (value: unknown): value is Run => typeof value === 'object' && value !== null && !Array.isArray(value);
const fields = (value: unknown): Run => (isRun(value) ? value : {});
const text = (value: unknown): string => (typeof value === 'string' ? value : '');

/** Returns the ids of a trace and of the parent, which dotted_order holds where they are missing. */
function placeOf(run: Run): { trace_id: string; parent: string } {
  const ids = text(run['dotted_order'])
    .split('.')
    .map((part) => part.slice(-36));
  const given = text(run['trace_id']);
  const parent = text(run['parent_run_id']);
  return {
    trace_id: given !== '' ? given : (ids[0] ?? '') !== '' ? (ids[0] ?? '') : text(run['id']),
    parent: parent !== '' ? parent : (ids.at(-2) ?? ''),
  };
}

/** Returns milliseconds since the epoch of a time given as ISO 8601 or as a number; NaN for none. */
function timeOf(value: unknown): number {
  if (typeof value === 'number') return value;
  return typeof value === 'string' ? isoMillis(value.replace(/(\.\d{9})\d+/, '$1')) : NaN;
}

export const hasEnded = (run: Run): boolean => !Number.isNaN(timeOf(run['end_time']));

/** Returns the span of a run. @param received_at milliseconds since the epoch */
export function spanOfRun(run: Run, received_at: number): LoggedSpan {
  const { trace_id, parent } = placeOf(run);
  const start = timeOf(run['start_time']);
  const end = timeOf(run['end_time']);
  const began = Number.isNaN(start) ? (Number.isNaN(end) ? received_at : end) : start;
  const error = text(run['error']);
  const id = text(run['id']);
  return {
    trace_id,
    span_id: id,
    ...(parent === '' || parent === id ? {} : { parent_span_id: parent }),
    name: text(run['name']) === '' ? 'unknown' : text(run['name']),
    start_time_unix_nano: nanosOf(began),
    end_time_unix_nano: nanosOf(Number.isNaN(end) ? began : end),
    attributes: attributesOfRun(run),
    ...(error === '' ? {} : { status: { code: STATUS_ERROR, message: error } }),
  };
}

/** Returns the attributes of a run's span. */
export function attributesOfRun(run: Run): Run {
  const type = text(run['run_type']);
  const { metadata, invocation_params, ...extra } = fields(run['extra']);
  const told = fields(metadata);
  const call = type === 'llm' || type === 'embedding';
  const inputs = shown(run['inputs'], call ? askedOf : undefined);
  const outputs = shown(run['outputs'], call ? answeredOf : undefined);
  return present({
    'langsmith.span.kind': type,
    'gen_ai.operation.name': OPERATIONS[type],
    ...(call ? callOf(told, fields(invocation_params), fields(run['outputs'])) : {}),
    [call && Array.isArray(inputs) ? 'gen_ai.input.messages' : 'input.value']: inputs,
    [call && Array.isArray(outputs) ? 'gen_ai.output.messages' : 'output.value']: outputs,
    'session.id': SESSIONS.map((key) => told[key]).find((value) => typeof value === 'string'),
    'user.id': told['user_id'],
    tags: run['tags'],
    metadata: Object.keys(told).length > 0 ? told : undefined,
    'langsmith.project': run['session_name'],
    'langsmith.invocation_params': invocation_params,
    'langsmith.extra': Object.keys(extra).length > 0 ? extra : undefined,
    'langsmith.events': Array.isArray(run['events']) && run['events'].length > 0 ? run['events'] : undefined,
    'langsmith.reference_example_id': run['reference_example_id'],
    'langsmith.attachments': run['attachments'],
    'langsmith.dotted_order': run['dotted_order'],
    completion_start_time: firstTokenAt(run['events']),
  });
}

/** Returns the model, vendor and usage of a call. */
function callOf(metadata: Run, invocation: Run, outputs: Run): Run {
  const usage = usageOf(metadata, outputs);
  const [input, output] = [fields(usage['input_token_details']), fields(usage['output_token_details'])];
  const response = fields(outputs['llm_output'] ?? outputs['llmOutput']);
  return {
    'gen_ai.request.model':
      metadata['ls_model_name'] ??
      invocation['model'] ??
      invocation['model_name'] ??
      outputs['model'] ??
      response['model_name'],
    'gen_ai.provider.name': metadata['ls_provider'],
    'gen_ai.usage.input_tokens': usage['input_tokens'] ?? usage['prompt_tokens'],
    'gen_ai.usage.output_tokens': usage['output_tokens'] ?? usage['completion_tokens'],
    'gen_ai.usage.cache_read.input_tokens': input['cache_read'],
    'gen_ai.usage.cache_write.input_tokens': input['cache_creation'],
    'gen_ai.usage.audio.input_tokens': input['audio'],
    'gen_ai.usage.audio.output_tokens': output['audio'],
    'gen_ai.usage.reasoning.output_tokens': output['reasoning'],
    cost_usd: typeof usage['total_cost'] === 'number' && usage['total_cost'] >= 0 ? usage['total_cost'] : undefined,
  };
}

/** Returns the usage where LangSmith's clients put it: in the metadata, or in the outputs. */
function usageOf(metadata: Run, outputs: Run): Run {
  const own = [metadata['usage_metadata'], outputs['usage_metadata'], outputs['usage']].find(isRun);
  if (own !== undefined) return own;
  const message = firstGeneration(outputs);
  const found = fields(fields(message['kwargs'])['usage_metadata'] ?? message['usage_metadata']);
  if (Object.keys(found).length > 0) return found;
  const told = fields(outputs['llm_output'] ?? outputs['llmOutput']);
  const tokens = fields(told['token_usage'] ?? told['tokenUsage']);
  return {
    ...tokens,
    ...present({ input_tokens: tokens['promptTokens'], output_tokens: tokens['completionTokens'] }),
  };
}

function firstGeneration(outputs: Run): Run {
  const outer = Array.isArray(outputs['generations']) ? (outputs['generations'] as unknown[])[0] : undefined;
  const inner = Array.isArray(outer) ? (outer as unknown[])[0] : outer;
  return fields(fields(inner)['message']);
}

/** Returns a text, or messages where `read` finds some; undefined for nothing. */
function shown(value: unknown, read: ((value: Run) => unknown[] | null) | undefined): unknown {
  if (value === undefined || value === null) return undefined;
  const messages = read === undefined ? null : read(fields(value));
  if (messages !== null) return messages;
  return typeof value === 'string' ? value : JSON.stringify(value);
}

function askedOf(inputs: Run): unknown[] | null {
  const given = inputs['messages'];
  if (!Array.isArray(given)) return null;
  // LangChain's chat models take a list of conversations, of which one is sent.
  const list =
    (given as unknown[]).every(Array.isArray) && given.length === 1 ? (given[0] as unknown[]) : (given as unknown[]);
  return list.map(messageOf);
}

function answeredOf(outputs: Run): unknown[] | null {
  const message = firstGeneration(outputs);
  if (Object.keys(message).length > 0) return [messageOf(message)];
  const choices = outputs['choices'];
  if (Array.isArray(choices)) return (choices as unknown[]).map((choice) => messageOf(fields(choice)['message']));
  if (Array.isArray(outputs['messages'])) return (outputs['messages'] as unknown[]).map(messageOf);
  return typeof outputs['role'] === 'string' && 'content' in outputs ? [messageOf(outputs)] : null;
}

const ROLES: Readonly<Record<string, string>> = {
  human: 'user',
  HumanMessage: 'user',
  HumanMessageChunk: 'user',
  ai: 'assistant',
  AIMessage: 'assistant',
  AIMessageChunk: 'assistant',
  SystemMessage: 'system',
  ToolMessage: 'tool',
  FunctionMessage: 'tool',
};

/** Returns a message as {role, content}: LangChain's serialized messages have both in `kwargs`. */
function messageOf(message: unknown): unknown {
  if (!isRun(message)) return { role: 'user', content: message };
  const kwargs = isRun(message['kwargs']) ? message['kwargs'] : isRun(message['data']) ? message['data'] : null;
  const own = kwargs ?? message;
  const type = text(own['type']) !== '' && kwargs !== null ? text(own['type']) : lastOf(message['id']);
  const role =
    text(own['role']) !== ''
      ? text(own['role'])
      : (ROLES[type] ?? ROLES[text(message['type'])] ?? (type === '' ? 'user' : type));
  const calls = Array.isArray(own['tool_calls']) && own['tool_calls'].length > 0 ? own['tool_calls'] : undefined;
  return present({
    role,
    content: own['content'] ?? '',
    tool_calls: calls,
    tool_call_id: own['tool_call_id'],
    name: own['name'],
  });
}

const lastOf = (path: unknown): string => (Array.isArray(path) ? text((path as unknown[]).at(-1)) : '');

/** Returns when the first token arrived, as LangChain's event says. */
function firstTokenAt(events: unknown): string | undefined {
  if (!Array.isArray(events)) return undefined;
  const found = (events as unknown[]).find((event) => isRun(event) && event['name'] === 'new_token');
  const at = isRun(found) ? found['time'] : undefined;
  return typeof at === 'string' ? at : undefined;
}

const present = (given: Run): Run =>
  Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined && value !== null));

/** Type of the part that begins a run, and of those that change it. */
export const RUN_POST = 'run-post';
export const RUN_PATCH = 'run-patch';

export const isRunPart = ({ type }: Pick<PartItem, 'type'>): boolean => type === RUN_POST || type === RUN_PATCH;

/** Returns the run with the later fields over the earlier ones. */
export function mergedRun(before: Run, after: Run): Run {
  const extra = { ...fields(before['extra']), ...fields(after['extra']) };
  const metadata = { ...fields(fields(before['extra'])['metadata']), ...fields(fields(after['extra'])['metadata']) };
  return {
    ...before,
    ...present(after),
    ...(Object.keys(extra).length > 0 ? { extra: { ...extra, metadata } } : {}),
  };
}

/**
 * Folds parts of runs of one trace into spans.
 * @param known ids of runs that became spans before; a patch of one becomes a span below it
 */
export function foldRuns(items: readonly PartItem[], known: ReadonlySet<string>): Folded[] {
  const runs = new Map<string, { run: Run; isPosted: boolean; last: PartItem; items: string[] }>();
  for (const item of items) {
    const id = text(item.body['id']);
    const held = runs.get(id);
    runs.set(id, {
      run: mergedRun(held?.run ?? {}, { ...item.body }),
      isPosted: (held?.isPosted ?? false) || item.type === RUN_POST,
      last: item,
      items: [...(held?.items ?? []), item.id],
    });
  }
  return [...runs].map(([id, { run, isPosted, last, items: parts }]) => {
    const { received_at } = last;
    const span = spanOfRun(run, received_at);
    // A patch carries every field but the inputs, so it stands for a run whose post never came.
    const isLate = known.has(id);
    const own = isLate
      ? {
          span_id: hash('sha256', `langsmith patch\n${id}\n${parts.join('\n')}`, 'hex').slice(0, 16),
          parent_span_id: id,
        }
      : {};
    const open = isPosted && !hasEnded(run) ? { 'langsmith.open': true } : {};
    return { id, received_at, span: { ...span, ...own, attributes: { ...span.attributes, ...open } } };
  });
}
