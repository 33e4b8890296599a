// The stages that every event passes, in the order in which they run. createTopology builds what
// runs.
//
//   ingest.<partition> ─▶ decode ▸ dedupe ▸ match ▸ sample ▸ meter ─▶ MeteredEvent
//
// After the stages, the worker processes a batch as a whole. worker/prepare.ts adds its events to
// the open traces, makes rows of the events that tail sampling has decided, and has completed
// traces judged (judging/rule_scores_of_batch.ts, the step `score`). worker/worker.ts then lands the
// rows (landing/lander.ts, the step `land`) and publishes what follows from them:
//
//   rows of the batch           ─▶ spans, span_texts_recent, traces, usage_events, judge_scores
//   platform events             ─▶ events.batch (trace.started, trace.completed, judge.threshold_breach, pii.match)
//   completed traces            ─▶ judging.live, for LLM judges
//   dead letters                ─▶ dead.<step>
//
// Cost corrections, which a repricing sends on ingest.<partition> with a schema of their own, pass
// no stage.
import { type Flow, startWith } from './flow.ts';
import type { SpanDeps } from './domain/decode/span.ts';
import type { LoggedEvent, MeteredEvent } from './stage.ts';
import { createDecodeStage } from './stages/decode.ts';
import { createDedupeStage, type DedupeDeps } from './stages/dedupe.ts';
import { createMatchStage, type MatchDeps } from './stages/match.ts';
import { createMeterStage } from './stages/meter.ts';
import { createSampleStage, type SampleOptions } from './stages/sample.ts';

export type Topology = Flow<LoggedEvent, MeteredEvent>;

export interface TopologyDeps {
  decode: SpanDeps;
  dedupe: DedupeDeps;
  match: MatchDeps;
  sample: SampleOptions;
}

/**
 * Returns the stages of one worker. They keep no event from one batch to the next; the tail buffer,
 * which does, comes after them (traces/tail_sampling.ts).
 */
export function createTopology({ decode, dedupe, match, sample }: TopologyDeps): Topology {
  return startWith(createDecodeStage(decode))
    .followedBy(createDedupeStage(dedupe))
    .followedBy(createMatchStage(match))
    .followedBy(createSampleStage(sample))
    .followedBy(createMeterStage());
}
