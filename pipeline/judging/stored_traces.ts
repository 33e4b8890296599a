// Reads stored traces as judges see them. It takes an organization and trace ids, and returns one
// JudgedTrace for each trace that the store has; missing ones are left out. Texts are whole.
// Bounds: traces of a call, bytes of a group, and the stretch of time that one statement covers.
import type { ClickHouse } from '../../sql/client/client.ts';
import {
  type JudgedHead,
  type JudgedSource,
  readJudgedBounds,
  readJudgedHeads,
  readJudgedSources,
  readJudgedTexts,
} from '../../sql/stores/judging.ts';
import { readSpanMessages, SPAN_MESSAGES_BYTES_MAX } from '../../sql/stores/span_messages.ts';
import { type SpanMessage, textsOfMessages } from '../domain/conversation/span_messages.ts';
import type { JudgedTrace } from '../domain/judging/judged_trace.ts';
import type { TraceOutcome } from '../domain/traces/span.ts';
import { unfoldTexts } from '../domain/text/text_refs.ts';

/** Maximum number of traces of one call: their ids fit into the parameters of a statement. */
export const JUDGED_TRACES_MAX = 200;
/** Maximum bytes of texts and attributes of one group, unless a single trace has more. */
const GROUP_BYTES_MAX = 32 * 1024 * 1024;
/**
 * Traces further apart than this are read separately, as a statement reads a whole stretch of time.
 */
const APART_MS = 600_000;

type Bounds = Awaited<ReturnType<typeof readJudgedBounds>>[number];

interface Stretch {
  from_ms: number;
  to_ms: number;
  trace_keys: string[];
}

interface Found {
  head: JudgedHead;
  /** undefined when no span has a text. */
  source: JudgedSource | undefined;
}

/** Location of a span's texts. */
interface Place {
  at: string;
  seq: string;
  index: number;
  sub: number;
}

interface Texts {
  prompt: string;
  response: string;
}

/**
 * Yields traces in groups of bounded size, for lists whose texts together might not fit into
 * memory.
 * @param trace_ids at most JUDGED_TRACES_MAX
 * @throws StoreUnavailable
 */
export async function* judgedTraceGroups(
  clickhouse: ClickHouse,
  org_id: string,
  trace_ids: readonly string[],
  signal: AbortSignal,
): AsyncGenerator<JudgedTrace[]> {
  if (trace_ids.length > JUDGED_TRACES_MAX) throw new Error(`${trace_ids.length} traces; at most ${JUDGED_TRACES_MAX}`);
  if (trace_ids.length === 0) return;
  const ids = [...new Set(trace_ids)];
  const bounds = await readJudgedBounds(clickhouse, { org_id, trace_ids: ids }, { signal });
  for (const stretch of together(bounds)) {
    const asked = { org_id, trace_ids: ids, ...stretch };
    const heads = await readJudgedHeads(clickhouse, asked, { signal });
    const sources = await readJudgedSources(clickhouse, asked, { signal });
    const byTrace = new Map(sources.map((source) => [source.trace_id, source]));
    const found = heads.map((head) => ({ head, source: byTrace.get(head.trace_id) }));
    for (const group of bounded(found)) {
      const [texts, said] = await Promise.all([
        textsOf(clickhouse, org_id, group, signal),
        messagesOf(clickhouse, org_id, { group, stretch }, signal),
      ]);
      yield group.map((one) => ({ ...judgedTrace(org_id, one, texts), ...said.get(one.head.trace_id) }));
    }
  }
}

/** Resolves with the traces of judgedTraceGroups, all at once. */
export async function readJudgedTraces(
  clickhouse: ClickHouse,
  org_id: string,
  trace_ids: readonly string[],
  signal: AbortSignal,
): Promise<JudgedTrace[]> {
  const traces: JudgedTrace[] = [];
  for await (const group of judgedTraceGroups(clickhouse, org_id, trace_ids, signal)) traces.push(...group);
  return traces;
}

function together(bounds: readonly Bounds[]): Stretch[] {
  const stretches: Stretch[] = [];
  for (const { trace_key, from_ms, to_ms } of bounds.toSorted((a, b) => a.from_ms - b.from_ms)) {
    const last = stretches.at(-1);
    if (last === undefined || from_ms - last.to_ms > APART_MS)
      stretches.push({ from_ms, to_ms, trace_keys: [trace_key] });
    else {
      last.trace_keys.push(trace_key);
      last.to_ms = Math.max(last.to_ms, to_ms);
    }
  }
  return stretches;
}

function bounded(found: readonly Found[]): Found[][] {
  const groups: Found[][] = [];
  let bytes = 0;
  for (const one of found) {
    const size =
      one.head.head_attributes.length + (one.source?.prompt_length ?? 0) + (one.source?.response_length ?? 0);
    const group = groups.at(-1);
    if (group === undefined || bytes + size > GROUP_BYTES_MAX) {
      groups.push([one]);
      bytes = size;
    } else {
      group.push(one);
      bytes += size;
    }
  }
  return groups;
}

/**
 * Returns the places that a trace's texts are read from: its prompt, its response, and attributes
 * that may refer to texts.
 */
function placesOf({ head, source }: Found): Place[] {
  if (source === undefined) return [];
  const places: Place[] = [];
  if (source.prompt_length > 0) places.push(promptPlace(source));
  if (source.response_length > 0) places.push(responsePlace(source));
  if (head.head_attributes.includes('"$ref"')) places.push(headPlace(head));
  return places;
}

const headPlace = (head: JudgedHead): Place => ({
  at: head.head_at,
  seq: head.head_seq,
  index: head.head_index,
  sub: head.head_sub,
});
const promptPlace = (source: JudgedSource): Place => ({
  at: source.prompt_at,
  seq: source.prompt_seq,
  index: source.prompt_index,
  sub: source.prompt_sub,
});
const responsePlace = (source: JudgedSource): Place => ({
  at: source.response_at,
  seq: source.response_seq,
  index: source.response_index,
  sub: source.response_sub,
});
const keyOf = (trace_id: string, { seq, index, sub }: Omit<Place, 'at'>): string =>
  `${trace_id} ${seq} ${index} ${sub}`;

async function textsOf(
  clickhouse: ClickHouse,
  org_id: string,
  group: readonly Found[],
  signal: AbortSignal,
): Promise<ReadonlyMap<string, Texts>> {
  const places = group.flatMap(placesOf);
  if (places.length === 0) return new Map();
  const rows = await readJudgedTexts(
    clickhouse,
    {
      org_id,
      // The store writes times with a zone that it does not accept in a list parameter.
      times: [...new Set(places.map(({ at }) => at.replace('Z', '')))],
      seqs: places.map(({ seq }) => seq),
      indexes: places.map(({ index }) => index),
      subs: places.map(({ sub }) => sub),
    },
    { signal },
  );
  return new Map(
    rows.map(({ trace_id, log_seq, log_index, log_sub, prompt, response }) => [
      keyOf(trace_id, { seq: log_seq, index: log_index, sub: log_sub }),
      { prompt, response },
    ]),
  );
}

/**
 * Returns the texts that log records hold of model calls, for traces in which neither the root nor a
 * call has its own: the prompt of the earliest such call, the response of the last.
 */
async function messagesOf(
  clickhouse: ClickHouse,
  org_id: string,
  { group, stretch }: { group: readonly Found[]; stretch: Stretch },
  signal: AbortSignal,
): Promise<ReadonlyMap<string, Partial<Texts>>> {
  const lacking = group.filter(({ source }) => source?.call_asked !== true || !source.call_answered);
  if (lacking.length === 0) return new Map();
  const trace_ids = lacking.map(({ head }) => head.trace_id);
  const { from_ms, to_ms } = stretch;
  const options = { signal, bytesMax: SPAN_MESSAGES_BYTES_MAX };
  const messages = await readSpanMessages(clickhouse, { org_id, trace_ids, from_ms, to_ms }, options);
  const byTrace = Map.groupBy(messages, ({ trace_id }) => trace_id);
  return new Map(
    lacking.map(({ head: { trace_id }, source }) => [trace_id, saidIn(byTrace.get(trace_id) ?? [], source)]),
  );
}

function saidIn(messages: readonly SpanMessage[], source: JudgedSource | undefined): Partial<Texts> {
  const texts = textsOfMessages(messages);
  const asked = messages.find(({ prompt }) => prompt !== '');
  const answered = messages.findLast(({ response }) => response !== '');
  const prompt = asked === undefined || source?.call_asked === true ? undefined : texts.get(asked.span_id)?.prompt;
  const response =
    answered === undefined || source?.call_answered === true ? undefined : texts.get(answered.span_id)?.response;
  return { ...(prompt === undefined ? {} : { prompt }), ...(response === undefined ? {} : { response }) };
}

function judgedTrace(org_id: string, { head, source }: Found, texts: ReadonlyMap<string, Texts>): JudgedTrace {
  const { trace_id } = head;
  const at = (place: Place): Texts | undefined => texts.get(keyOf(trace_id, place));
  const own = at(headPlace(head));
  return {
    org_id,
    trace_id,
    agent_id: head.head_agent === '' || !head.has_root ? head.first_agent : head.head_agent,
    name: head.has_root ? head.head_name : '',
    model: source?.model ?? '',
    outcome: outcomeOf(head),
    source_format: head.head_format,
    tags: head.tags,
    started_at: head.started_ms,
    duration_ms: Math.max(0, head.ended_ms - head.started_ms),
    input_tokens: head.input_tokens,
    output_tokens: head.output_tokens,
    cost_usd: head.cost_usd,
    prompt: source === undefined || source.prompt_length === 0 ? '' : (at(promptPlace(source))?.prompt ?? ''),
    response: source === undefined || source.response_length === 0 ? '' : (at(responsePlace(source))?.response ?? ''),
    attributes: unfoldTexts(JSON.parse(head.head_attributes) as Record<string, unknown>, own?.prompt, own?.response),
  };
}

function outcomeOf({ errors, timeouts }: JudgedHead): TraceOutcome {
  if (errors > 0) return 'error';
  return timeouts > 0 ? 'timeout' : 'success';
}
