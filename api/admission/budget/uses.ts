// What the events of a request will be metered as, before they are in the log: by the very functions with which the pipeline
// decodes and meters them, so that what is let in and what lands are the same amounts.
import { spansOf } from '../../../pipeline/domain/decode/decode.ts';
import type { RawEvent, SpanDeps } from '../../../pipeline/domain/decode/span.ts';
import type { PriceBook } from '../../../pipeline/domain/pricing/pricing.ts';
import type { Span } from '../../../pipeline/domain/traces/span.ts';
import { usageOf } from '../../../pipeline/domain/budgets/usage.ts';
import type { AskedUse } from '../../../pipeline/domain/budgets/usage_ledger.ts';

/** An event on its way into the log, with the partition that it belongs to. */
export interface EnteringEvent {
  event: RawEvent;
  partition: number;
}

/** One use an event. An event that the pipeline will not be able to decode lands nowhere and uses nothing. */
export function usesOf(prices: PriceBook, events: readonly EnteringEvent[]): AskedUse[] {
  // How much of a prompt is stored, and what is redacted in it, changes no amount.
  const deps = { prices, maxPromptTokens: () => null, redactorOf: () => null };
  return events.flatMap(({ event, partition }) => {
    const spans = decoded(deps, event);
    if (spans === null) return [];
    const usage = usageOf({ ...event, spans });
    return [
      {
        agent_id: usage.agent_id,
        partition,
        hour: usage.hour,
        tokens: usage.input_tokens + usage.output_tokens,
        storage_bytes: usage.storage_bytes,
        sandbox_micros: Number(usage.sandbox_micros),
        cost_pico_usd: usage.cost_pico_usd,
      },
    ];
  });
}

/** null for what decode refuses, or breaks off at: the pipeline makes a dead letter of both, which says why. */
function decoded(deps: SpanDeps, event: RawEvent): Span[] | null {
  try {
    const spans = spansOf(deps, event, JSON.parse(event.body));
    return typeof spans === 'string' ? null : spans;
  } catch {
    return null;
  }
}
