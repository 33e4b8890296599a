// The stage sample: decides how much of an event is stored: all of it, or a summary row without
// prompt, response and attributes.
//
// It marks each decoded event, with the rule that decided, and removes none; summarized events are
// metered like all others. It decides each event by itself: by the keep rules for the event,
// otherwise by its trace id. To tail sampling (traces/tail_sampling.ts), `summary` means that
// nothing keeps the trace so far.
import { keepRule, keptByRate, PROFILE_RATE, type SamplingProfile } from '../domain/traces/keep_rules.ts';
import type { DecodedEvent, SampledEvent, Stage } from '../stage.ts';

export interface SampleOptions {
  profile: SamplingProfile;
  /** If false, everything is kept, whatever the profile. */
  enabled: boolean;
  /** An event that took longer is kept, in milliseconds. */
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
