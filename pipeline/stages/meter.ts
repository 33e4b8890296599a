// The stage meter: adds to each sampled event what it used of tokens, storage, sandbox time and
// money, for its organization and agent. Sampling does not change what counts as used.
import { usageOf } from '../domain/budgets/usage.ts';
import type { MeteredEvent, SampledEvent, Stage } from '../stage.ts';

export function createMeterStage(): Stage<SampledEvent, MeteredEvent> {
  return {
    name: 'meter',
    run: (batch) => batch.map((event) => ({ kind: 'emit', out: { ...event, usage: usageOf(event) } })),
  };
}
