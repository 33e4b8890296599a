// Computes the use of a request's events before they are published, by the functions with which the
// pipeline decodes and meters them, so that the amounts admitted and landed are the same. A call that
// has no event yet is priced by the same price book.
import { spansOf } from '../../../pipeline/domain/decode/decode.ts';
import { NO_USAGE } from '../../../pipeline/domain/decode/draft.ts';
import type { RawEvent, SpanDeps } from '../../../pipeline/domain/decode/span.ts';
import type { PriceBook } from '../../../pipeline/domain/pricing/pricing.ts';
import type { Span } from '../../../pipeline/domain/traces/span.ts';
import { hourOf, usageOf } from '../../../pipeline/domain/budgets/usage.ts';
import type { AskedUse } from '../../../pipeline/domain/budgets/usage_ledger.ts';

/** An event about to be published, with its partition. */
export interface EnteringEvent {
  event: RawEvent;
  partition: number;
  /** The body as parsed, where it is at hand. */
  parsed?: unknown;
}

/** A call that is about to be made, with the most that it may use. */
export interface EstimatedCall {
  org_id: string;
  model: string;
  /** Provider whose price list is looked up first. */
  provider: string;
  agent_id: string;
  partition: number;
  /** Milliseconds since the epoch. */
  at: number;
  input_tokens: number;
  output_tokens: number;
  storage_bytes: number;
}

/** A request is metered by its events, or by the estimate of a call that has no event yet. */
export type MeteredEvent = EnteringEvent | EstimatedCall;

/** What an event uses, and the model that it names. */
export interface EventUse {
  use: AskedUse;
  /** Models of its spans; without those that name none. */
  models: readonly string[];
}

/** Returns one use for each event; see eventUsesOf. */
export const usesOf = (prices: PriceBook, events: readonly MeteredEvent[]): AskedUse[] =>
  eventUsesOf(prices, events).map(({ use }) => use);

/**
 * Returns one use for each event; none for an event that the pipeline will not be able to decode,
 * since it uses nothing.
 */
export function eventUsesOf(prices: PriceBook, events: readonly MeteredEvent[]): EventUse[] {
  // The stored part of a prompt and its redactions change no amount.
  const deps = { prices, maxPromptTokens: () => null, redactorOf: () => null };
  return events.flatMap((metered) => {
    if (!('event' in metered)) return [estimatedUse(prices, metered)];
    const { event, partition, parsed } = metered;
    const spans = decoded(deps, event, parsed);
    if (spans === null) return [];
    const usage = usageOf({ ...event, spans });
    const use = {
      agent_id: usage.agent_id,
      partition,
      hour: usage.hour,
      tokens: usage.input_tokens + usage.output_tokens,
      storage_bytes: usage.storage_bytes,
      sandbox_micros: Number(usage.sandbox_micros),
      cost_pico_usd: usage.cost_pico_usd,
    };
    return [{ use, models: spans.map(({ model }) => model).filter((model) => model !== '') }];
  });
}

function estimatedUse(prices: PriceBook, call: EstimatedCall): EventUse {
  const { org_id, model, provider, agent_id, partition, at, input_tokens, output_tokens, storage_bytes } = call;
  const usage = { ...NO_USAGE, input_tokens, output_tokens };
  const use = {
    agent_id,
    partition,
    hour: hourOf(at),
    tokens: input_tokens + output_tokens,
    storage_bytes,
    sandbox_micros: 0,
    cost_pico_usd: prices.price({ org_id, models: [model], provider, at, usage }).cost_pico_usd,
  };
  return { use, models: [model] };
}

/**
 * Returns null for an event that decoding rejects or throws at: the pipeline dead-letters it with
 * the reason.
 */
function decoded(deps: SpanDeps, event: RawEvent, parsed: unknown): Span[] | null {
  try {
    const spans = spansOf(deps, event, parsed ?? JSON.parse(event.body));
    return typeof spans === 'string' ? null : spans;
  } catch {
    return null;
  }
}
