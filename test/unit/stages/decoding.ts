// The decode stage without own prices, prompt limits and redaction, and events as the log holds them: for tests of the stage.
import { eventHex, traceIdOf } from '../../../pipeline/domain/traces/ids.ts';
import { createPriceBook } from '../../../pipeline/domain/pricing/pricing.ts';
import type { Span } from '../../../pipeline/domain/traces/span.ts';
import type { LoggedEvent } from '../../../pipeline/stage.ts';
import { createDecodeStage } from '../../../pipeline/stages/decode.ts';
import type { SourceFormat } from '../../../schemas/codec.ts';

export const NOW = Date.parse('2026-02-01T00:00:00.000Z');
export const stage = createDecodeStage({
  prices: createPriceBook(() => []),
  maxPromptTokens: () => null,
  redactorOf: () => null,
});

export function logged(format: SourceFormat, event: Record<string, unknown>, index = 0): LoggedEvent {
  const body = JSON.stringify(event);
  const event_hex = eventHex(body);
  return {
    partition: 3,
    log_seq: 17,
    log_index: index,
    org_id: 'org_a',
    format,
    event_hex,
    trace_id: traceIdOf(format, event, event_hex),
    received_at: NOW,
    body,
  };
}

export function decode(format: SourceFormat, event: Record<string, unknown>, using = stage): Span[] {
  const [outcome] = using.run([logged(format, event)]);
  if (outcome?.kind !== 'emit') throw new Error(`not emitted: ${JSON.stringify(outcome)}`);
  return outcome.out.spans;
}

export function decodeOne(format: SourceFormat, event: Record<string, unknown>, using = stage): Span {
  const [span] = decode(format, event, using);
  if (span === undefined) throw new Error('no span');
  return span;
}
