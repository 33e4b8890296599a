// Computes the use of a request's events before they are published, by the functions with which the
// pipeline decodes and meters them, so that the amounts admitted and landed are the same.
import { spansOf } from '../../../pipeline/domain/decode/decode.ts';
import type { RawEvent, SpanDeps } from '../../../pipeline/domain/decode/span.ts';
import type { PriceBook } from '../../../pipeline/domain/pricing/pricing.ts';
import type { Span } from '../../../pipeline/domain/traces/span.ts';
import { usageOf } from '../../../pipeline/domain/budgets/usage.ts';
import type { AskedUse } from '../../../pipeline/domain/budgets/usage_ledger.ts';

/** An event about to be published, with its partition. */
export interface EnteringEvent {
  event: RawEvent;
  partition: number;
}

/** What an event uses, and the model that it names. */
export interface EventUse {
  use: AskedUse;
  /** Models of its spans; without those that name none. */
  models: readonly string[];
}

/** Returns one use for each event; see eventUsesOf. */
export const usesOf = (prices: PriceBook, events: readonly EnteringEvent[]): AskedUse[] =>
  eventUsesOf(prices, events).map(({ use }) => use);

/**
 * Returns one use for each event; none for an event that the pipeline will not be able to decode,
 * since it uses nothing.
 */
export function eventUsesOf(prices: PriceBook, events: readonly EnteringEvent[]): EventUse[] {
  // The stored part of a prompt and its redactions change no amount.
  const deps = { prices, maxPromptTokens: () => null, redactorOf: () => null };
  return events.flatMap(({ event, partition }) => {
    const spans = decoded(deps, event);
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

/**
 * Returns null for an event that decoding rejects or throws at: the pipeline dead-letters it with
 * the reason.
 */
function decoded(deps: SpanDeps, event: RawEvent): Span[] | null {
  try {
    const spans = spansOf(deps, event, JSON.parse(event.body));
    return typeof spans === 'string' ? null : spans;
  } catch {
    return null;
  }
}
