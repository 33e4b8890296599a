// The first stage: an event of the log becomes canonical spans, or a dead letter that says what is wrong. It never throws.
import { spansOf } from '../../domain/decode/decode.ts';
import type { SpanDeps } from '../../domain/decode/span.ts';
import type { DecodedEvent, LoggedEvent, Outcome, Stage } from '../../stage.ts';

export function createDecodeStage(deps: SpanDeps): Stage<LoggedEvent, DecodedEvent> {
  return { name: 'decode', run: (batch) => batch.map((event) => decodeOne(deps, event)) };
}

function decodeOne(deps: SpanDeps, logged: LoggedEvent): Outcome<DecodedEvent> {
  try {
    const spans = spansOf(deps, logged, JSON.parse(logged.body));
    if (typeof spans === 'string') return dead(spans);
    const { partition, log_seq, log_index, org_id, trace_id, event_hex, received_at } = logged;
    return { kind: 'emit', out: { partition, log_seq, log_index, org_id, trace_id, event_hex, received_at, spans } };
  } catch (error) {
    // A bug, or a body that no check foresaw: the event is kept with its reason, its neighbours go on.
    return dead(error instanceof Error ? error.message : String(error));
  }
}

function dead(detail: string): Outcome<DecodedEvent> {
  return { kind: 'dead', reason: 'decode_failed', detail };
}
