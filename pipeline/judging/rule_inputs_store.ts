// Reads back what judges need of traces that a worker does not hold: the leading spans with their
// texts, and the scores that rules gave before. Statements are bounded by READ_TRACES_MAX traces,
// and only the texts that are needed leave the store.
import type { ClickHouse } from '../../sql/client/client.ts';
import type { Verdict } from '../../schemas/records/judge.ts';
import type { DraftSpan, SpanPlace } from '../domain/judging/judged_draft.ts';
import type { SpanKind } from '../domain/traces/span.ts';
import { unfoldTexts } from '../domain/text/text_refs.ts';
import type { Judgement } from './rule_judges.ts';

const READ_TIMEOUT_MS = 60_000;
/** Maximum number of traces of one statement: their texts are in memory together. */
export const READ_TRACES_MAX = 50;

/** A trace of the partition to read. Times are milliseconds since the epoch. */
export interface StoredRef {
  org_id: string;
  trace_id: string;
  /** log_seq of the newest message whose spans are read. */
  through: number;
  started_at: number;
  ended_at: number;
}

/** A span whose texts are read. */
export interface PlaceRef {
  org_id: string;
  trace_id: string;
  place: SpanPlace;
}

export interface StoredTexts {
  prompt: string;
  response: string;
  attributes: Record<string, unknown>;
}

export const traceKeyOf = ({ org_id, trace_id }: { org_id: string; trace_id: string }): string =>
  `${org_id} ${trace_id}`;
export const placeKeyOf = (place: SpanPlace): string => place.join(':');

/** Reads of the store that judging needs, each within one partition. */
export interface JudgedStore {
  /** Resolves with the spans of at most READ_TRACES_MAX traces, by trace. */
  spans(partition: number, refs: readonly StoredRef[]): Promise<Map<string, DraftSpan[]>>;
  /** Resolves with the texts and attributes of spans, by place. */
  texts(partition: number, refs: readonly StoredRef[], places: readonly PlaceRef[]): Promise<Map<string, StoredTexts>>;
  /** Resolves with the judgements that rules made of the traces, by trace. */
  judgements(partition: number, refs: readonly StoredRef[]): Promise<Map<string, Judgement[]>>;
}

interface Placed {
  org_id: string;
  trace_id: string;
  seq: string;
  log_index: number;
  log_sub: number;
}

interface SpanRow extends Placed {
  started_ms: string;
  ended_ms: string;
  is_root: number;
  kind: SpanKind;
  model: string;
  source_format: string;
}

const placeOf = (row: Placed): SpanPlace => [Number(row.seq), row.log_index, row.log_sub];

const TRACES = `org_id IN {orgs:Array(String)} AND trace_key IN (SELECT sipHash64(arrayJoin({traces:Array(String)}))) AND partition = {partition:UInt16}`;
const WITHIN = `started_at >= fromUnixTimestamp64Milli({from:Int64}, 'UTC') AND started_at <= fromUnixTimestamp64Milli({until:Int64}, 'UTC')`;
const PLACE = 'org_id, trace_id, toString(log_seq) AS seq, log_index, log_sub';
const AT_PLACES =
  '(log_seq, log_index, log_sub) IN (SELECT p.1, p.2, p.3 FROM (SELECT arrayJoin({places:Array(Tuple(UInt64, UInt32, UInt32))}) AS p))';
const BOTH_TEXTS = (select: string, where: string): string =>
  ['span_texts_recent', 'span_texts']
    .map((table) => `SELECT ${select} FROM ${table} WHERE ${where}`)
    .join(' UNION ALL ');

function paramsOf(partition: number, refs: readonly StoredRef[]): Record<string, unknown> {
  return {
    partition,
    orgs: [...new Set(refs.map(({ org_id }) => org_id))],
    traces: refs.map(({ trace_id }) => trace_id),
    through: Math.max(...refs.map(({ through }) => through)),
    from: Math.min(...refs.map(({ started_at }) => started_at)),
    until: Math.max(...refs.map(({ ended_at }) => ended_at)),
  };
}

export class ClickHouseJudgedStore implements JudgedStore {
  readonly #client: ClickHouse;

  constructor(client: ClickHouse) {
    this.#client = client;
  }

  async spans(partition: number, refs: readonly StoredRef[]): Promise<Map<string, DraftSpan[]>> {
    const params = paramsOf(partition, refs);
    const where = `${TRACES} AND ${WITHIN} AND log_seq <= {through:UInt64}`;
    const [spans, texts] = await Promise.all([
      this.#rows<SpanRow>(
        'judged_spans',
        `SELECT ${PLACE}, toUnixTimestamp64Milli(started_at) AS started_ms, toUnixTimestamp64Milli(ended_at) AS ended_ms,
           parent_span_id = '' AS is_root, kind, model, source_format FROM spans WHERE ${where}`,
        params,
      ),
      this.#rows<Placed & { asks: number; answers: number }>(
        'judged_texts',
        BOTH_TEXTS(`${PLACE}, notEmpty(prompt) AS asks, notEmpty(response) AS answers`, where),
        params,
      ),
    ]);
    const has = new Map(texts.map((row) => [`${traceKeyOf(row)} ${placeKeyOf(placeOf(row))}`, row]));
    const through = new Map(refs.map((ref) => [traceKeyOf(ref), ref.through]));
    const found = new Map<string, DraftSpan[]>(refs.map((ref) => [traceKeyOf(ref), []]));
    for (const row of spans) {
      const trace = traceKeyOf(row);
      const place = placeOf(row);
      const own = found.get(trace);
      if (own === undefined || place[0] > (through.get(trace) ?? 0)) continue;
      const text = has.get(`${trace} ${placeKeyOf(place)}`);
      own.push({
        place,
        started_at: Number(row.started_ms),
        ended_at: Number(row.ended_ms),
        is_root: row.is_root === 1,
        kind: row.kind,
        model: row.model,
        source_format: row.source_format,
        prompt: text?.asks === 1 ? null : '',
        response: text?.answers === 1 ? null : '',
        attributes: null,
        attribute_bytes: 0,
      });
    }
    return found;
  }

  async texts(
    partition: number,
    refs: readonly StoredRef[],
    places: readonly PlaceRef[],
  ): Promise<Map<string, StoredTexts>> {
    if (places.length === 0) return new Map();
    const params = {
      ...paramsOf(partition, refs),
      places: `[${places.map(({ place }) => `(${place.join(',')})`).join(',')}]`,
    };
    const where = `${TRACES} AND ${WITHIN} AND ${AT_PLACES}`;
    const [texts, attributes] = await Promise.all([
      this.#rows<Placed & { prompt: string; response: string }>(
        'judged_texts',
        BOTH_TEXTS(`${PLACE}, prompt, response`, where),
        params,
      ),
      this.#rows<Placed & { attributes: string }>(
        'judged_attributes',
        `SELECT ${PLACE}, attributes FROM spans WHERE ${where}`,
        params,
      ),
    ]);
    const byPlace = new Map(texts.map((row) => [placeKeyOf(placeOf(row)), row]));
    return new Map(
      attributes.map((row) => {
        const key = placeKeyOf(placeOf(row));
        const { prompt, response } = byPlace.get(key) ?? { prompt: '', response: '' };
        const folded = JSON.parse(row.attributes) as Record<string, unknown>;
        return [key, { prompt, response, attributes: unfoldTexts(folded, prompt, response) }];
      }),
    );
  }

  async judgements(partition: number, refs: readonly StoredRef[]): Promise<Map<string, Judgement[]>> {
    // Live scores of LLM judges have no position in the log, so log_seq excludes them.
    const rows = await this.#rows<Judgement & { org_id: string; trace_id: string; verdict: Verdict }>(
      'judged_already',
      `SELECT org_id, trace_id, judge_id, judge_version, judge_name, score, verdict, reason FROM judge_scores
       WHERE ${TRACES} AND eval_id = '' AND log_seq > 0 ORDER BY scored_at DESC LIMIT 1 BY org_id, trace_id, judge_id`,
      paramsOf(partition, refs),
    );
    return Map.groupBy(rows, traceKeyOf);
  }

  async #rows<T>(name: string, sql: string, params: Record<string, unknown>): Promise<T[]> {
    return this.#client.rows<T>({ name, sql, params, timeoutMs: READ_TIMEOUT_MS });
  }
}
