// Observations of Langfuse, one a line, as its API and its exports to blob storage write them.
// Each becomes a span with the attributes that Langfuse's own SDKs write, which the service reads.
import { digest, type Fields, isFields, nanosOf, NotImported, type Piece, TRACES } from './piece.ts';

const SCOPE = 'langfuse-import';
const TYPES = new Set([
  'span',
  'generation',
  'event',
  'embedding',
  'tool',
  'agent',
  'chain',
  'retriever',
  'evaluator',
  'guardrail',
]);

/** Returns the value of a field under either of its names: the API's, or the exports'. */
function field(line: Fields, name: string): unknown {
  const value = line[name] ?? line[name.replaceAll(/[A-Z]/g, (char) => `_${char.toLowerCase()}`)];
  return value === '' ? undefined : (value ?? undefined);
}

const typeOf = (line: Fields): string => {
  const type = line['type'];
  return typeof type === 'string' ? type.toLowerCase() : '';
};

export const isLangfuse = (line: Fields): boolean =>
  (TYPES.has(typeOf(line)) && field(line, 'traceId') !== undefined) || Array.isArray(line['observations']);

/**
 * Returns the pieces of an observation, or of a trace with its observations.
 * @throws NotImported
 */
export function langfusePieces(line: Fields): Piece[] {
  const { observations } = line;
  if (!Array.isArray(observations)) return [pieceOf(line, line)];
  const nested = (observations as unknown[]).filter(isFields);
  if (nested.length === 0) throw new NotImported('a trace without its observations');
  const { id: traceId } = line;
  return nested.map((observation) => pieceOf({ traceId, ...observation }, line));
}

function pieceOf(observation: Fields, trace: Fields): Piece {
  const [trace_id, id] = [field(observation, 'traceId'), observation['id']];
  if (typeof trace_id !== 'string' || typeof id !== 'string') throw new NotImported('traceId and id must be texts');
  const start = nanosOf(field(observation, 'startTime'));
  if (start === null) throw new NotImported('startTime must be a time in ISO 8601');
  const end = nanosOf(field(observation, 'endTime')) ?? start;
  const parent = field(observation, 'parentObservationId');
  const name = observation['name'];
  const span = {
    traceId: traceIdOf(trace_id),
    spanId: spanIdOf(id),
    ...(typeof parent === 'string' ? { parentSpanId: spanIdOf(parent) } : {}),
    name: typeof name === 'string' && name !== '' ? name : 'unknown',
    kind: 1,
    startTimeUnixNano: String(start),
    endTimeUnixNano: String(end < start ? start : end),
    attributes: attributesOf(observation, trace, { trace_id, id }),
  };
  return {
    target: TRACES,
    text: JSON.stringify({ scopeSpans: [{ scope: { name: SCOPE }, spans: [span] }] }),
    records: 1,
  };
}

/** Ids of OpenTelemetry stay, UUIDs lose their dashes, and others become a digest. */
function traceIdOf(id: string): string {
  const hex = id.replaceAll('-', '').toLowerCase();
  return /^[0-9a-f]{32}$/.test(hex) ? hex : digest(id, 32);
}

const spanIdOf = (id: string): string => (/^[0-9a-f]{16}$/i.test(id) ? id.toLowerCase() : digest(id, 16));

function attributesOf(line: Fields, trace: Fields, ids: { trace_id: string; id: string }): object[] {
  const tags = field(trace, 'tags');
  const metadata = line['metadata'];
  const texts: Record<string, unknown> = {
    'langfuse.observation.type': typeOf(line) === '' ? 'span' : typeOf(line),
    'langfuse.observation.input': line['input'],
    'langfuse.observation.output': line['output'],
    'langfuse.observation.metadata': isFields(metadata) && Object.keys(metadata).length === 0 ? undefined : metadata,
    'langfuse.observation.level': line['level'],
    'langfuse.observation.status_message': field(line, 'statusMessage'),
    'langfuse.observation.model.name':
      field(line, 'model') ?? field(line, 'providedModelName') ?? field(line, 'modelName'),
    'langfuse.observation.model.parameters': field(line, 'modelParameters'),
    'langfuse.observation.usage_details': usageOf(line),
    'langfuse.observation.cost_details': costOf(line),
    'langfuse.observation.prompt.name': field(line, 'promptName'),
    'langfuse.observation.prompt.version': field(line, 'promptVersion'),
    'langfuse.observation.completion_start_time': timeText(field(line, 'completionStartTime')),
    'langfuse.trace.name': field(line, 'traceName') ?? (trace === line ? undefined : trace['name']),
    'langfuse.environment': field(line, 'environment') ?? field(trace, 'environment'),
    'langfuse.release': field(line, 'release') ?? field(trace, 'release'),
    'langfuse.version': field(line, 'version'),
    'session.id': field(line, 'sessionId') ?? field(trace, 'sessionId'),
    'user.id': field(line, 'userId') ?? field(trace, 'userId'),
    // The ids by which Langfuse knows the observation, where OpenTelemetry has no room for them.
    'langfuse.import.trace_id': traceIdOf(ids.trace_id) === ids.trace_id ? undefined : ids.trace_id,
    'langfuse.import.observation_id': spanIdOf(ids.id) === ids.id ? undefined : ids.id,
  };
  const attributes = Object.entries(texts)
    .filter(([, value]) => value !== undefined && value !== null)
    .map(([key, value]) => ({
      key,
      value: { stringValue: typeof value === 'string' ? value : JSON.stringify(value) },
    }));
  if (!Array.isArray(tags) || tags.length === 0) return attributes;
  const values = (tags as unknown[]).map((tag) => ({ stringValue: String(tag) }));
  return [...attributes, { key: 'langfuse.trace.tags', value: { arrayValue: { values } } }];
}

/** Times of exports have no zone; they are in UTC. */
function timeText(value: unknown): string | undefined {
  const nanos = nanosOf(value);
  return nanos === null ? undefined : new Date(Number(nanos / 1_000_000n)).toISOString();
}

/** Exports write whole numbers as texts. */
function numbersOf(value: unknown): Record<string, number> | undefined {
  if (!isFields(value)) return undefined;
  const numbers = Object.entries(value)
    .map(([key, amount]) => [key, typeof amount === 'string' && amount !== '' ? Number(amount) : amount] as const)
    .filter((entry): entry is readonly [string, number] => typeof entry[1] === 'number' && Number.isFinite(entry[1]));
  return numbers.length === 0 ? undefined : Object.fromEntries(numbers);
}

function usageOf(line: Fields): Record<string, number> | undefined {
  const details = numbersOf(field(line, 'usageDetails'));
  if (details !== undefined) return details;
  const { input, output, total } = numbersOf(line['usage']) ?? {};
  const older = numbersOf({ input, output, total });
  return (
    older ?? numbersOf({ input: line['promptTokens'], output: line['completionTokens'], total: line['totalTokens'] })
  );
}

function costOf(line: Fields): Record<string, number> | undefined {
  const details = numbersOf(field(line, 'costDetails'));
  if (details !== undefined) return details;
  const total = field(line, 'calculatedTotalCost') ?? field(line, 'totalCost');
  return numbersOf({ total });
}
