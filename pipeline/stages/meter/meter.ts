// What each event used: tokens, storage, sandbox time and money, of its org and agent, whatever sampling said.
// In: sampled events. Out: the same with their usage. Amounts are those of the rows, so that what is metered and what is
// stored add up to the same sums.
import { decimalToScaled } from '../../domain/money.ts';
import type { MeteredEvent, SampledEvent, Stage, Usage } from '../../stage.ts';

const HOUR_MS = 3_600_000;
/** Decimals of seconds in the store. */
const SECONDS_DECIMALS = 6;

export function createMeterStage(): Stage<SampledEvent, MeteredEvent> {
  return {
    name: 'meter',
    run: (batch) => batch.map((event) => ({ kind: 'emit', out: { ...event, usage: usageOf(event) } })),
  };
}

/** The sums over an event's spans, in the hour (UTC) of its receipt; the agent is the event's own span's. */
function usageOf(event: SampledEvent): Usage {
  const usage: Usage = {
    org_id: event.org_id,
    agent_id: event.spans[0]?.agent_id ?? '',
    hour: Math.floor(event.received_at / HOUR_MS) * HOUR_MS,
    events: 1,
    input_tokens: 0,
    output_tokens: 0,
    storage_bytes: 0,
    sandbox_micros: 0n,
    cost_pico_usd: 0n,
  };
  for (const span of event.spans) {
    usage.input_tokens += span.input_tokens;
    usage.output_tokens += span.output_tokens;
    usage.storage_bytes += span.storage_bytes;
    usage.cost_pico_usd += span.cost_pico_usd;
    if (span.sandbox_seconds > 0) usage.sandbox_micros += decimalToScaled(span.sandbox_seconds.toFixed(SECONDS_DECIMALS), SECONDS_DECIMALS);
  }
  return usage;
}
