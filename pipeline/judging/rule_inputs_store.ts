// Reads back what judges need of traces that a worker does not hold: the leading spans with their
// texts, and the scores that rules gave before. Statements are bounded by READ_TRACES_MAX traces,
// and only the texts that are needed leave the store.
import type { ClickHouse } from '../../sql/client/client.ts';
import {
  readLiveAttributes,
  readLiveSpans,
  readLiveTexts,
  readRuleScores,
  readTextSides,
} from '../../sql/stores/live_judging.ts';
import type { DraftSpan, SpanPlace } from '../domain/judging/judged_draft.ts';
import { hasSpanFlag } from '../domain/traces/span_flags.ts';
import { unfoldTexts } from '../domain/text/text_refs.ts';
import type { Judgement } from './rule_judges.ts';

/** Maximum number of traces of one statement: their texts are in memory together. */
export const READ_TRACES_MAX = 50;

/** A trace to read. Times are milliseconds since the epoch. */
export interface StoredRef {
  partition: number;
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
/** Returns the key of a span. A log position by itself names one span of each partition. */
export const placeKeyOf = (trace: { org_id: string; trace_id: string }, place: SpanPlace): string =>
  `${traceKeyOf(trace)} ${place.join(':')}`;

/** Reads of the store that judging needs, of at most READ_TRACES_MAX traces of any partitions each. */
export interface JudgedStore {
  /** Resolves with the spans of the traces, by trace. */
  spans(refs: readonly StoredRef[]): Promise<Map<string, DraftSpan[]>>;
  /** Resolves with the texts and attributes of spans of the traces, by placeKeyOf. */
  texts(refs: readonly StoredRef[], places: readonly PlaceRef[]): Promise<Map<string, StoredTexts>>;
  /** Resolves with the judgements that rules made of the traces, by trace. */
  judgements(refs: readonly StoredRef[]): Promise<Map<string, Judgement[]>>;
}

interface Placed {
  org_id: string;
  trace_id: string;
  seq: number;
  log_index: number;
  log_sub: number;
}

const placeOf = (row: Placed): SpanPlace => [row.seq, row.log_index, row.log_sub];

function recordOf(flags: number): DraftSpan['record'] {
  if (hasSpanFlag(flags, 'message_record')) return 'message';
  return hasSpanFlag(flags, 'line_record') ? 'line' : undefined;
}

/** The parameters of every read about some traces. */
function paramsOf(refs: readonly StoredRef[]) {
  return {
    partitions: [...new Set(refs.map(({ partition }) => partition))],
    orgs: [...new Set(refs.map(({ org_id }) => org_id))],
    traces: refs.map(({ trace_id }) => trace_id),
    from: Math.min(...refs.map(({ started_at }) => started_at)),
    until: Math.max(...refs.map(({ ended_at }) => ended_at)),
  };
}

export class ClickHouseJudgedStore implements JudgedStore {
  readonly #client: ClickHouse;

  constructor(client: ClickHouse) {
    this.#client = client;
  }

  async spans(refs: readonly StoredRef[]): Promise<Map<string, DraftSpan[]>> {
    const params = { ...paramsOf(refs), through: Math.max(...refs.map(({ through }) => through)) };
    const [spans, texts] = await Promise.all([
      readLiveSpans(this.#client, params),
      readTextSides(this.#client, params),
    ]);
    const has = new Map(texts.map((row) => [placeKeyOf(row, placeOf(row)), row]));
    const through = new Map(refs.map((ref) => [traceKeyOf(ref), ref.through]));
    const found = new Map<string, DraftSpan[]>(refs.map((ref) => [traceKeyOf(ref), []]));
    for (const row of spans) {
      const trace = traceKeyOf(row);
      const place = placeOf(row);
      const own = found.get(trace);
      if (own === undefined || place[0] > (through.get(trace) ?? 0)) continue;
      const text = has.get(placeKeyOf(row, place));
      own.push({
        place,
        started_at: row.started_ms,
        ended_at: row.ended_ms,
        is_root: row.is_root,
        kind: row.kind,
        model: row.model,
        source_format: row.source_format,
        prompt: text?.has_prompt === true ? null : '',
        response: text?.has_response === true ? null : '',
        record: recordOf(row.flags),
        parent_span_id: row.parent_span_id,
        name: row.name,
        attributes: null,
        attribute_bytes: 0,
      });
    }
    return found;
  }

  async texts(refs: readonly StoredRef[], places: readonly PlaceRef[]): Promise<Map<string, StoredTexts>> {
    if (places.length === 0) return new Map();
    const params = {
      ...paramsOf(refs),
      places: `[${places.map(({ place }) => `(${place.join(',')})`).join(',')}]`,
    };
    const [texts, attributes] = await Promise.all([
      readLiveTexts(this.#client, params),
      readLiveAttributes(this.#client, params),
    ]);
    const byPlace = new Map(texts.map((row) => [placeKeyOf(row, placeOf(row)), row]));
    return new Map(
      attributes.map((row) => {
        const key = placeKeyOf(row, placeOf(row));
        const { prompt, response } = byPlace.get(key) ?? { prompt: '', response: '' };
        const folded = JSON.parse(row.attributes) as Record<string, unknown>;
        return [key, { prompt, response, attributes: unfoldTexts(folded, prompt, response) }];
      }),
    );
  }

  async judgements(refs: readonly StoredRef[]): Promise<Map<string, Judgement[]>> {
    const { partitions, orgs, traces } = paramsOf(refs);
    return Map.groupBy(await readRuleScores(this.#client, { partitions, orgs, traces }), traceKeyOf);
  }
}
