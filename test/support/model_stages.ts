// A stage decode and an observer for models of the pipeline: the body of an event has the fields of its
// span, and nothing is counted.
import type { DecodedEvent, LoggedEvent, Stage } from '../../pipeline/stage.ts';
import type { StageObserver } from '../../pipeline/worker/stage_runner.ts';
import { aSpan } from './spans.ts';
import type { ModelEvent } from './tail_model.ts';

export const silent: StageObserver = {
  batch: () => undefined,
  dropped: () => undefined,
  dead: () => undefined,
  sampled: () => undefined,
};

export const decode: Stage<LoggedEvent, DecodedEvent> = {
  name: 'decode',
  run: (batch) =>
    batch.map(({ body, ...event }) => {
      const given = JSON.parse(body) as ModelEvent['span'];
      const { org_id, trace_id, event_hex, received_at } = event;
      const span = aSpan({ org_id, trace_id, event_hex, received_at, span_id: `spn_${event_hex}`, ...given });
      return { kind: 'emit', out: { ...event, spans: [span] } };
    }),
};
