// Computes the use of one event as sums over its spans, exactly as the stored rows have them, so
// that metered, admitted and stored amounts are equal. Pure.
import type { Usage } from '../../stage.ts';
import { dayOf } from '../time/days.ts';
import { decimalToScaled } from '../pricing/money.ts';
import { NO_OUTCOMES, outcomesOf } from '../pricing/outcomes.ts';
import type { Span } from '../traces/span.ts';

const HOUR_MS = 3_600_000;
/** Decimals of seconds in the store. */
const SECONDS_DECIMALS = 6;

/** The parts of an event that metering reads. */
interface MeteredParts {
  org_id: string;
  received_at: number;
  spans: readonly Span[];
  key_id?: string;
  backfill?: boolean;
}

/** Returns the start of the hour (UTC) of an instant, both in milliseconds. */
export const hourOf = (at: number): number => Math.floor(at / HOUR_MS) * HOUR_MS;

/**
 * Returns the sums over an event's spans, in the hour (UTC) of its receipt, or of its start for an
 * event of the past. The event's own span gives agent, model and day.
 */
export function usageOf(event: MeteredParts): Usage {
  const own = event.spans[0];
  const counted_at = event.backfill === true ? (own?.started_at ?? event.received_at) : event.received_at;
  const usage: Usage = {
    ...noUsage({
      org_id: event.org_id,
      agent_id: own?.agent_id ?? '',
      hour: hourOf(counted_at),
      day: dayOf(own?.started_at ?? event.received_at),
      model: own?.model ?? '',
      department: own?.department ?? '',
      realm: own?.realm ?? '',
    }),
    key_id: event.key_id ?? '',
    last_received_at: counted_at,
    events: 1,
    outcomes: outcomesOf(own?.attributes['outcomes']),
  };
  for (const span of event.spans) {
    usage.input_tokens += span.input_tokens;
    usage.output_tokens += span.output_tokens;
    usage.storage_bytes += span.storage_bytes;
    usage.cost_pico_usd += span.cost_pico_usd;
    if (span.sandbox_seconds > 0)
      usage.sandbox_micros += decimalToScaled(span.sandbox_seconds.toFixed(SECONDS_DECIMALS), SECONDS_DECIMALS);
  }
  return usage;
}

/** Returns a usage of zero with the given keys, for corrections, which only adjust its amounts. */
export function noUsage(
  where: Pick<Usage, 'org_id' | 'agent_id' | 'hour' | 'day' | 'model' | 'department' | 'realm'>,
): Usage {
  return {
    ...where,
    key_id: '',
    last_received_at: 0,
    events: 0,
    input_tokens: 0,
    output_tokens: 0,
    storage_bytes: 0,
    sandbox_micros: 0n,
    cost_pico_usd: 0n,
    outcomes: NO_OUTCOMES,
    correction: 0n,
  };
}
