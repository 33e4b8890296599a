// Decides how much of an event is stored: full, or a summary row without prompt, response and attributes.
// In: decoded events. Out: the same, marked, with the rule that held. It removes nothing: what sampling thins is metered all
// the same. Head decisions: by the event's own keep rules, else by its trace id. Tail sampling (traces/tail_sampling.ts) takes
// `summary` as: nothing keeps the trace so far.
import { keepRule, keptByRate, PROFILE_RATE, type SamplingProfile } from '../domain/traces/keep_rules.ts';
import type { DecodedEvent, SampledEvent, Stage } from '../stage.ts';

export interface SampleOptions {
  profile: SamplingProfile;
  /** false keeps everything, whatever the profile. */
  enabled: boolean;
  /** An event that took longer is kept. */
  slowMs: number;
}

export function createSampleStage({ profile, enabled, slowMs }: SampleOptions): Stage<DecodedEvent, SampledEvent> {
  const rate = enabled ? PROFILE_RATE[profile] : 1;
  return {
    name: 'sample',
    run: (batch) =>
      batch.map((event) => {
        const rule = keepRule(event.spans, slowMs);
        const kept = rule !== null || keptByRate(event.trace_id, rate);
        return { kind: 'emit', out: { ...event, retain: kept ? 'full' : 'summary', sample_reason: rule ?? 'profile' } };
      }),
  };
}
