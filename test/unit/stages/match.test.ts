// The stage match: which records of a model call count, by the records before them in the log.
import { describe, expect, it } from 'vitest';
import { callRecordOf } from '../../../pipeline/domain/traces/call_records.ts';
import type { Span } from '../../../pipeline/domain/traces/span.ts';
import { KnownCalls, type RecordPlace } from '../../../pipeline/stages/known_calls.ts';
import { createMatchStage, type LandedCall } from '../../../pipeline/stages/match.ts';
import type { DecodedEvent } from '../../../pipeline/stage.ts';
import { aSpan } from '../../support/spans.ts';

const GATEWAY = { source_format: 'messages', attributes: { gateway: true, 'gen_ai.response.id': 'msg_1' } } as const;
const SPAN = {
  source_format: 'otlp',
  attributes: { 'gen_ai.response.id': 'msg_1', scope: { name: 'instrumentation' } },
} as const;

let seq = 0;
function anEvent(given: Partial<Span>, more: Partial<DecodedEvent> = {}): DecodedEvent {
  seq += 1;
  const span = aSpan({ kind: 'llm', input_tokens: 10, output_tokens: 1, span_id: `span_${seq}`, ...given });
  const { org_id, trace_id, event_hex, received_at } = span;
  return {
    partition: 0,
    log_seq: seq,
    log_index: 0,
    org_id,
    trace_id,
    event_hex,
    received_at,
    spans: [span],
    ...more,
  };
}

/** Returns a run of the stage, and the traces that it looked up. */
function aStage(landed: readonly LandedCall[] = [], mayBeStored = landed.length > 0) {
  const calls = new KnownCalls(1000);
  const looked: RecordPlace[] = [];
  const book = { mayBeStored: () => mayBeStored, remembers: () => true };
  const stage = createMatchStage({
    partitionOf: () => ({ calls, book }),
    findCalls: (places) => {
      looked.push(...places);
      return Promise.resolve(landed);
    },
  });
  const run = async (...events: DecodedEvent[]): Promise<DecodedEvent[]> => {
    await stage.prefetch?.(events);
    return stage.run(events).flatMap((outcome) => (outcome.kind === 'emit' ? [outcome.out] : []));
  };
  return { run, calls, looked, book };
}
const duplicateOf = ({ spans }: DecodedEvent): string | undefined => spans[0]?.duplicate_of;

describe('match', () => {
  it('counts the first record of a call, and marks a later one with the span that counts', async () => {
    const { run } = aStage();
    const [gateway, span] = await run(anEvent(GATEWAY), anEvent(SPAN));
    expect(gateway && duplicateOf(gateway)).toBeUndefined();
    expect(span?.spans[0]).toMatchObject({
      duplicate_of: gateway?.spans[0]?.span_id,
      input_tokens: 0,
      output_tokens: 0,
      cost_pico_usd: 0n,
      attributes: { 'gen_ai.usage.input_tokens': 10, 'gen_ai.usage.output_tokens': 1 },
    });
  });

  it('counts a record of the gateway in place of those before it', async () => {
    const { run } = aStage();
    const [span, log, gateway] = await run(
      anEvent(SPAN),
      anEvent({ source_format: 'otlp', attributes: { request_id: 'req_1', 'event.name': 'claude_code.api_request' } }),
      anEvent({ ...GATEWAY, attributes: { ...GATEWAY.attributes, upstream_request_id: 'req_1' } }),
    );
    expect(gateway?.replaced?.map(({ span_id }) => span_id)).toEqual([span?.spans[0]?.span_id, log?.spans[0]?.span_id]);
    expect(gateway?.spans[0]?.replaces).toHaveLength(2);
    expect(gateway?.spans[0]?.input_tokens).toBe(10);
  });

  it.each([
    ['of the same source', SPAN, SPAN],
    ['with another id', GATEWAY, { ...SPAN, attributes: { ...SPAN.attributes, 'gen_ai.response.id': 'msg_2' } }],
    ['of another trace', GATEWAY, { ...SPAN, trace_id: 'another' }],
    ['of another organization', GATEWAY, { ...SPAN, org_id: 'another' }],
    ['without an id', GATEWAY, { ...SPAN, attributes: {} }],
    ['that is no model call', GATEWAY, { ...SPAN, kind: 'event' }],
  ] as const)('counts two records of which the second is one %s', async (_, first, second) => {
    const { run } = aStage();
    expect((await run(anEvent(first), anEvent(second))).map(duplicateOf)).toEqual([undefined, undefined]);
  });

  it('lets a record without usage count nothing, so that the next one counts', async () => {
    const { run } = aStage();
    const events = await run(
      anEvent({ ...SPAN, input_tokens: 0, output_tokens: 0, cost_pico_usd: 0n }),
      anEvent({ ...SPAN, attributes: { ...SPAN.attributes, scope: { name: 'another' } } }),
    );
    expect(events.map(duplicateOf)).toEqual([undefined, undefined]);
  });

  it('gives every figure to the gateway, also to an answer from the cache that used nothing', async () => {
    const { run } = aStage();
    const [, span] = await run(anEvent({ ...GATEWAY, input_tokens: 0, output_tokens: 0 }), anEvent(SPAN));
    expect(span && duplicateOf(span)).toBeDefined();
  });

  it('leaves events of the past as they are', async () => {
    const { run } = aStage();
    const events = await run(anEvent(GATEWAY), anEvent(SPAN, { backfill: true }));
    expect(events.map(duplicateOf)).toEqual([undefined, undefined]);
  });

  it('reads the calls of a trace that landed before, once', async () => {
    const first = anEvent(GATEWAY);
    const record = callRecordOf(first);
    if (record === null) throw new Error('the event is a record');
    const { run, looked } = aStage([
      { ...record, org_id: first.org_id, trace_id: first.trace_id, log_seq: first.log_seq },
    ]);
    const [again] = await run(anEvent(SPAN));
    await run(anEvent(SPAN));
    expect(again && duplicateOf(again)).toBe(record.span_id);
    expect(looked).toHaveLength(1);
  });

  it('reads the calls of a trace again after it left memory, and keeps what has not landed', () => {
    const { book } = aStage();
    const gateway = anEvent(GATEWAY);
    const bounded = new KnownCalls(0);
    const record = callRecordOf(gateway);
    if (record === null) throw new Error('the event is a record');
    bounded.take(gateway, record);
    bounded.trim(gateway.log_seq - 1, book);
    expect([bounded.size, bounded.needsStore(gateway, book)]).toEqual([1, false]);
    bounded.trim(gateway.log_seq, book);
    expect([bounded.size, bounded.needsStore(gateway, book)]).toEqual([0, true]);
  });

  it('forgets the calls of erased traces and organizations', async () => {
    const { run, calls } = aStage();
    const [one] = await run(anEvent(GATEWAY), anEvent({ ...GATEWAY, trace_id: 'other' }));
    calls.forget(one?.org_id ?? '', [one?.trace_id ?? '']);
    expect(calls.size).toBe(1);
    calls.forgetOrg(one?.org_id ?? '');
    expect(calls.size).toBe(0);
  });
});
