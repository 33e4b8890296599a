// Folds the events of Langfuse's older protocol into spans. In: the events of one trace in the order
// of their arrival (trace-create, span-create, generation-update, …), and the ids of which spans
// were made before. Out: one span for each observation and one for the trace, with Langfuse's
// attributes. Pure: the same events give the same spans, so a repetition is recognized. Nothing is
// lost: an update whose observation became a span before is a span below it, with an id of its own.
import { hash } from 'node:crypto';
import { isoMillis } from '../../../schemas/formats/times.ts';
import { isFields, type Fields } from '../decode/draft.ts';
import { type Folded, nanosOf, type PartItem } from '../traces/logged_span.ts';

const TYPE =
  /^(trace|span|generation|event|observation|agent|tool|chain|retriever|evaluator|embedding|guardrail)-(create|update)$/;
const STATUS_ERROR = 2;

/** Returns the kind of thing and the operation that an event's type names; null for other types. */
export function legacyType(type: string): { kind: string; isCreate: boolean } | null {
  const found = TYPE.exec(type);
  if (found?.[1] === undefined || (found[1] === 'trace' && found[2] === 'update')) return null;
  return { kind: found[1], isCreate: found[2] === 'create' };
}

/** Returns the id of the trace that an event belongs to; undefined when it names none. */
export function traceOf({ type, body }: Pick<PartItem, 'type' | 'body'>): unknown {
  return legacyType(type)?.kind === 'trace' ? body['id'] : body['traceId'];
}

/** Returns the id of the span of a trace as a whole. */
const rootIdOf = (trace_id: string): string => hexOf(`langfuse trace\n${trace_id}`);
const hexOf = (text: string): string => hash('sha256', text, 'hex').slice(0, 16);

interface Thing {
  id: string;
  kind: string;
  /** True when one of the events creates it, so that it becomes the span of its id. */
  isCreated: boolean;
  body: Record<string, unknown>;
  first: PartItem;
  last: PartItem;
  /** Ids of its events. */
  items: string[];
}

/** Returns true when an observation has begun and no event has ended it. */
export function isOpenAfter({ type, body }: Pick<PartItem, 'type' | 'body'>): boolean {
  const kind = legacyType(type)?.kind;
  return kind !== 'trace' && kind !== 'event' && body['endTime'] == null;
}

/**
 * Folds events of one trace.
 * @param known ids of traces and observations that became spans before
 */
export function foldLegacy(trace_id: string, items: readonly PartItem[], known: ReadonlySet<string>): Folded[] {
  const things = thingsOf(trace_id, items);
  const trace = things.find(({ kind }) => kind === 'trace');
  const observations = things.filter(({ kind }) => kind !== 'trace');
  const hasRoot = trace !== undefined || known.has(traceKey(trace_id));
  const shared = trace === undefined ? {} : sharedOf(trace.body);
  const spans = observations.map((thing) => {
    const isLate = !thing.isCreated || known.has(thing.id);
    const parent = textOf(thing.body['parentObservationId']);
    return folded(thing, {
      trace_id,
      span_id: isLate ? lateIdOf(thing) : thing.id,
      parent: isLate ? thing.id : parent !== '' ? parent : hasRoot ? rootIdOf(trace_id) : '',
      attributes: {
        ...shared,
        ...observationAttributes(thing),
        ...(isLate ? { 'langfuse.late_update_of': thing.id } : {}),
      },
    });
  });
  if (trace === undefined) return spans;
  const isLate = known.has(traceKey(trace_id));
  const root = folded(trace, {
    trace_id,
    span_id: isLate ? lateIdOf(trace) : rootIdOf(trace_id),
    parent: isLate ? rootIdOf(trace_id) : '',
    attributes: { ...shared, ...traceAttributes(trace.body) },
  });
  return [...spans, isLate ? root : around(root, spans)];
}

/** Returns the name of a trace among the ids that are known; observations have other ids. */
export const traceKey = (trace_id: string): string => `trace ${trace_id}`;

const lateIdOf = ({ id, items }: Thing): string => hexOf(`langfuse update\n${id}\n${items.join('\n')}`);

function thingsOf(trace_id: string, items: readonly PartItem[]): Thing[] {
  const things = new Map<string, Thing>();
  for (const item of items) {
    const type = legacyType(item.type);
    if (type === null) continue;
    const given = textOf(item.body['id']);
    const id = type.kind === 'trace' ? traceKey(trace_id) : given === '' ? hexOf(item.id) : given;
    const thing = things.get(id);
    if (thing === undefined)
      things.set(id, {
        id,
        kind: type.kind,
        isCreated: type.isCreate,
        body: merged({}, item.body),
        first: item,
        last: item,
        items: [item.id],
      });
    else {
      thing.isCreated ||= type.isCreate;
      if (thing.kind === 'observation') thing.kind = type.kind;
      thing.body = merged(thing.body, item.body);
      thing.last = item;
      thing.items.push(item.id);
    }
  }
  return [...things.values()];
}

/** Returns the body with the later fields over the earlier ones; metadata is joined, tags are united. */
function merged(before: Record<string, unknown>, after: Fields): Record<string, unknown> {
  const body = { ...before };
  for (const [key, value] of Object.entries(after)) {
    if (value === null || value === undefined || key === '__proto__') continue;
    const had = body[key];
    if (isFields(had) && isFields(value) && JOINED.has(key)) body[key] = { ...had, ...value };
    else if (key === 'tags' && Array.isArray(had) && Array.isArray(value))
      body[key] = [...new Set([...(had as unknown[]), ...(value as unknown[])])];
    else body[key] = value;
  }
  return body;
}
const JOINED = new Set(['metadata', 'usage', 'usageDetails', 'costDetails', 'modelParameters']);

interface Placed {
  trace_id: string;
  span_id: string;
  parent: string;
  attributes: Record<string, unknown>;
}

function folded(thing: Thing, { trace_id, span_id, parent, attributes }: Placed): Folded {
  const { body, first, last, kind } = thing;
  const start = timeOf(
    body['startTime'] ?? (kind === 'trace' ? body['timestamp'] : undefined),
    timeOf(first.timestamp, first.received_at),
  );
  const ended = timeOf(body['endTime'] ?? body['completionTime'], NaN);
  const isInstant = kind === 'event' || kind === 'trace';
  const end = Number.isNaN(ended)
    ? isInstant
      ? start
      : Math.max(start, timeOf(last.timestamp, last.received_at))
    : Math.max(start, ended);
  const message = textOf(body['statusMessage']);
  const isError = textOf(body['level']).toUpperCase() === 'ERROR';
  return {
    id: thing.id,
    received_at: last.received_at,
    span: {
      trace_id,
      span_id,
      ...(parent === '' || parent === span_id ? {} : { parent_span_id: parent }),
      name: textOf(body['name']) || kind,
      start_time_unix_nano: nanosOf(start),
      end_time_unix_nano: nanosOf(end),
      attributes: {
        ...attributes,
        ...(Number.isNaN(ended) && !isInstant ? { 'langfuse.open': true } : {}),
      },
      ...(isError ? { status: { code: STATUS_ERROR, ...(message === '' ? {} : { message }) } } : {}),
    },
  };
}

/** Returns the trace's span, extended over its observations. */
function around(root: Folded, spans: readonly Folded[]): Folded {
  const all = [root, ...spans].map(({ span }) => span);
  const least = (texts: readonly string[]) => texts.reduce((a, b) => (BigInt(b) < BigInt(a) ? b : a));
  const most = (texts: readonly string[]) => texts.reduce((a, b) => (BigInt(b) > BigInt(a) ? b : a));
  return {
    ...root,
    span: {
      ...root.span,
      start_time_unix_nano: least(all.map((span) => span.start_time_unix_nano)),
      end_time_unix_nano: most(all.map((span) => span.end_time_unix_nano)),
    },
  };
}

/** Returns what every span of the trace says of whose it is. */
function sharedOf(body: Fields): Record<string, unknown> {
  return present({
    'user.id': body['userId'],
    'session.id': body['sessionId'],
    'langfuse.environment': body['environment'],
    'langfuse.release': body['release'],
  });
}

function traceAttributes(body: Fields): Record<string, unknown> {
  return present({
    'langfuse.observation.type': 'span',
    'langfuse.trace.name': body['name'],
    'langfuse.trace.tags': body['tags'],
    'langfuse.trace.public': body['public'],
    'langfuse.trace.metadata': body['metadata'],
    'langfuse.version': body['version'],
    'langfuse.observation.input': textIn(body['input']),
    'langfuse.observation.output': textIn(body['output']),
  });
}

function observationAttributes({ kind, body }: Thing): Record<string, unknown> {
  const usage = isFields(body['usage']) ? body['usage'] : {};
  const { unit, inputCost, outputCost, totalCost, ...tokens } = usage;
  const cost = present({ input: inputCost, output: outputCost, total: totalCost });
  const details = body['usageDetails'] ?? (Object.keys(tokens).length > 0 ? tokens : undefined);
  const type = textOf(body['type']).toLowerCase();
  return present({
    'langfuse.observation.type': kind === 'observation' && type !== '' ? type : kind,
    'langfuse.observation.input': textIn(body['input'] ?? body['prompt']),
    'langfuse.observation.output': textIn(body['output'] ?? body['completion']),
    'langfuse.observation.metadata': body['metadata'],
    'langfuse.observation.level': body['level'],
    'langfuse.observation.status_message': body['statusMessage'],
    'langfuse.observation.model.name': body['model'],
    'langfuse.observation.model.parameters': body['modelParameters'],
    'langfuse.observation.usage_details': details === undefined ? undefined : JSON.stringify(details),
    'langfuse.observation.usage_unit': unit,
    'langfuse.observation.cost_details':
      body['costDetails'] !== undefined
        ? JSON.stringify(body['costDetails'])
        : Object.keys(cost).length > 0
          ? JSON.stringify(cost)
          : undefined,
    'langfuse.observation.completion_start_time': body['completionStartTime'],
    'langfuse.observation.prompt.name': body['promptName'],
    'langfuse.observation.prompt.version': body['promptVersion'],
    'langfuse.version': body['version'],
    'langfuse.environment': body['environment'],
  });
}

const present = (fields: Readonly<Record<string, unknown>>): Record<string, unknown> =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined && value !== null));

const textIn = (value: unknown): unknown =>
  value === undefined || value === null ? undefined : typeof value === 'string' ? value : JSON.stringify(value);

const textOf = (value: unknown): string => (typeof value === 'string' ? value : '');

/** Returns the milliseconds of a time; `otherwise` for anything that is none. */
function timeOf(value: unknown, otherwise: number): number {
  const at = typeof value === 'string' ? isoMillis(value) : NaN;
  return Number.isNaN(at) ? otherwise : at;
}
