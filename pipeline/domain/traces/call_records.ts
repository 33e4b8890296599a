// Recognizes the records of one model call. The same call may arrive from the gateway, from the
// span of an instrumented client and from the log of an agent. They share a trace and an id that the
// vendor gave the answer or the request. Pure: takes spans, returns what identifies and counts them.
import type { CountedCall, Usage } from '../../stage.ts';
import { noUsage, usageOf } from '../budgets/usage.ts';
import type { Fields } from '../decode/draft.ts';
import { UNPRICED } from '../pricing/pricing.ts';
import type { Span } from './span.ts';

/** Attributes that hold the vendor's id of an answer or of a request. */
const ANSWER_IDS = ['gen_ai.response.id', 'ai.response.id', 'llm.response.id', 'upstream_request_id'] as const;
/** Attribute in which the gateway and Claude Code put the id of a request; others mean their own requests. */
const REQUEST_ID = 'request_id';
/** All attributes of a record that may hold such an id. */
export const CALL_ID_ATTRIBUTES = [...ANSWER_IDS, REQUEST_ID] as const;
const REQUEST_ID_SOURCES = /^(?:gateway$|log claude_code$|span com\.anthropic\.claude_code)/;
/** Attributes that say what made a record. */
export const CALL_SOURCE_ATTRIBUTES = ['gateway', 'event.name', 'scope'] as const;
const ID_LENGTH_MAX = 256;
/** Source of the records that the gateway makes. */
export const GATEWAY = 'gateway';

/** A record of a call, before it is known whether it counts. */
export interface CallRecord extends CountedCall {
  ids: readonly string[];
}

/** An event whose own span may be a record of a call. */
interface RecordedParts {
  org_id: string;
  received_at: number;
  key_id?: string;
  backfill?: boolean;
  spans: readonly Span[];
}

/**
 * Returns the record of a call that an event is; null for every other event, for a call without an
 * id, and for an event of the past, which nothing relayed.
 */
export function callRecordOf(event: RecordedParts): CallRecord | null {
  const own = event.spans[0];
  if (own?.kind !== 'llm' || event.backfill === true) return null;
  const source = callSource(own.source_format, own.attributes);
  const ids = own.call_ids ?? callIds(own.attributes, source);
  if (ids.length === 0) return null;
  const usage = usageOf({ ...event, spans: [{ ...own, storage_bytes: 0, sandbox_seconds: 0 }] });
  return { ids, source, span_id: own.span_id, usage };
}

/** Returns the vendor's ids of a call, as the attributes of a record from this source name them. */
export function callIds(attributes: Fields, source: string): string[] {
  const names = REQUEST_ID_SOURCES.test(source) ? CALL_ID_ATTRIBUTES : ANSWER_IDS;
  const ids = names
    .map((name) => attributes[name])
    .filter((id): id is string => typeof id === 'string' && id !== '' && id.length <= ID_LENGTH_MAX);
  return [...new Set(ids)];
}

/**
 * Returns what made a record. Two records of one source are two calls, even if a vendor repeats
 * its ids; two instrumentations are two sources.
 */
export function callSource(source_format: string, attributes: Fields): string {
  if (attributes['gateway'] === true) return GATEWAY;
  if (source_format !== 'otlp') return 'ingest';
  const log = attributes['event.name'];
  if (typeof log === 'string') return `log ${log.split('.', 1).join()}`;
  const scope = attributes['scope'];
  const name = typeof scope === 'object' && scope !== null ? (scope as Fields)['name'] : undefined;
  return `span ${typeof name === 'string' ? name : ''}`;
}

/** Returns true for a record that counts anything. */
export const isUsed = ({ usage }: Pick<CountedCall, 'usage'>): boolean =>
  usage.input_tokens > 0 || usage.output_tokens > 0 || usage.cost_pico_usd > 0n;

/** Returns the span without tokens and cost, marked as a duplicate. The attributes keep its figures. */
export function duplicateOf(span: Span, counted: string): Span {
  const { duplicate_of: _sent, price_missing: _missing, ...attributes } = span.attributes;
  return {
    ...span,
    ...UNPRICED,
    input_tokens: 0,
    output_tokens: 0,
    cached_input_tokens: 0,
    cache_write_tokens: 0,
    reasoning_tokens: 0,
    duplicate_of: counted,
    attributes: {
      duplicate_of: counted,
      'gen_ai.usage.input_tokens': span.input_tokens,
      'gen_ai.usage.output_tokens': span.output_tokens,
      ...attributes,
    },
  };
}

/** Returns the span of the gateway, marked with the spans whose figures it replaces. */
export function replacing(span: Span, replaced: readonly CountedCall[]): Span {
  const { replaces: _sent, ...attributes } = span.attributes;
  const replaces = replaced.map(({ span_id }) => span_id);
  return { ...span, replaces, attributes: { replaces, ...attributes } };
}

/** Returns usage that cancels what a record counted, in the same hour and for the same agent and key. */
export function cancelled({ usage }: CountedCall): Usage {
  return {
    ...noUsage(usage),
    key_id: usage.key_id,
    last_received_at: usage.hour,
    input_tokens: -usage.input_tokens,
    output_tokens: -usage.output_tokens,
    cost_pico_usd: -usage.cost_pico_usd,
  };
}
