// The stage decode: turns an event of the log into canonical spans, or into a dead letter that says
// what is wrong. It never throws.
//
// If an organization's own patterns may take too long on this thread, its events are decoded in the
// prefetch, where they may wait for another thread. All others are decoded in the batch.
import { spansOf } from '../domain/decode/decode.ts';
import type { SpanDeps } from '../domain/decode/span.ts';
import type { Redaction } from '../domain/pii/pii.ts';
import type { DecodedEvent, LoggedEvent, Outcome, Stage } from '../stage.ts';

export function createDecodeStage(deps: SpanDeps): Stage<LoggedEvent, DecodedEvent> {
  let decoded: ReadonlyMap<LoggedEvent, Outcome<DecodedEvent>> = new Map();
  return {
    name: 'decode',
    async prefetch(batch) {
      const ahead = new Map<LoggedEvent, Outcome<DecodedEvent>>();
      for (const event of batch) {
        const redactor = deps.redactorOf(event.org_id);
        if (redactor?.mayExceed(event.body.length) !== true) continue;
        ahead.set(event, await redactor.redact((redaction) => decodeOne(deps, event, redaction)));
      }
      decoded = ahead;
    },
    run: (batch) => batch.map((event) => decoded.get(event) ?? decodeInPlace(deps, event)),
  };
}

function decodeInPlace(deps: SpanDeps, event: LoggedEvent): Outcome<DecodedEvent> {
  const redactor = deps.redactorOf(event.org_id);
  if (redactor === null) return decodeOne(deps, event, null);
  const redaction = redactor.begin();
  const outcome = decodeOne(deps, event, redaction);
  redactor.took(redaction);
  return outcome;
}

function decodeOne(deps: SpanDeps, logged: LoggedEvent, redaction: Redaction | null): Outcome<DecodedEvent> {
  try {
    const spans = spansOf(deps, logged, JSON.parse(logged.body), redaction);
    if (typeof spans === 'string') return dead(spans);
    const { partition, log_seq, log_index, org_id, trace_id, event_hex, received_at, key_id, backfill } = logged;
    const where = { partition, log_seq, log_index };
    return {
      kind: 'emit',
      out: {
        ...where,
        org_id,
        trace_id,
        event_hex,
        received_at,
        key_id: key_id ?? '',
        backfill: backfill ?? false,
        spans,
      },
    };
  } catch (error) {
    // A bug, or a body that no check foresaw. The event becomes a dead letter with its reason, and
    // the batch goes on.
    return dead(error instanceof Error ? error.message : String(error));
  }
}

function dead(detail: string): Outcome<DecodedEvent> {
  return { kind: 'dead', reason: 'decode_failed', detail };
}
