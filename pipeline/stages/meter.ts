// What each event used: tokens, storage, sandbox time and money, of its org and agent, whatever sampling said.
// In: sampled events. Out: the same with their usage.
import { usageOf } from '../domain/budgets/usage.ts';
import type { MeteredEvent, SampledEvent, Stage } from '../stage.ts';

export function createMeterStage(): Stage<SampledEvent, MeteredEvent> {
  return {
    name: 'meter',
    run: (batch) => batch.map((event) => ({ kind: 'emit', out: { ...event, usage: usageOf(event) } })),
  };
}
