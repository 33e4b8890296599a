// Metrics of the stages and of sampling.
import * as metrics from '../../ops/platform/metrics.ts';
import type { StageObserver } from '../worker/stage_runner.ts';

export const stageMetrics: StageObserver = {
  batch(stage, seconds, received, emitted) {
    metrics.pipelineBatchSeconds.observe({ stage }, seconds);
    metrics.pipelineEventsReceivedTotal.inc({ stage }, received);
    metrics.pipelineEventsEmittedTotal.inc({ stage }, emitted);
  },
  dropped(stage, reason, count) {
    metrics.pipelineEventsDroppedTotal.inc({ stage, reason }, count);
  },
  dead(stage, reason, count) {
    metrics.pipelineEventsDeadTotal.inc({ stage, reason }, count);
  },
  sampled(retain, reason, count) {
    metrics.samplingEventsTotal.inc({ retain, reason }, count);
  },
};
