// Builders of data-plane records for tests. A test overrides the defaults that matter to it.
import { NO_OUTCOMES } from '../../pipeline/domain/pricing/outcomes.ts';
import type { Span } from '../../pipeline/domain/traces/span.ts';
import type { MeteredEvent } from '../../pipeline/stage.ts';

let serial = 0;

export function aSpan(over: Partial<Span> = {}): Span {
  serial += 1;
  const hex = serial.toString(16).padStart(16, '0');
  return {
    org_id: 'org_a',
    trace_id: 'trc_1',
    span_id: `spn_${hex}`,
    parent_span_id: '',
    event_hex: hex,
    started_at: 1_000_000,
    ended_at: 1_000_500,
    received_at: 1_001_000,
    kind: 'llm',
    name: 'gpt-4o',
    model: 'gpt-4o',
    provider: 'openai',
    source_format: 'chatcompletion',
    outcome: 'success',
    agent_id: '',
    department: '',
    realm: '',
    environment: '',
    service: '',
    release: '',
    prompt_name: '',
    prompt_version: '',
    session_id: '',
    user_id: '',
    tags: [],
    input_tokens: 10,
    output_tokens: 5,
    cached_input_tokens: 0,
    first_token_ms: 0,
    cache_write_tokens: 0,
    reasoning_tokens: 0,
    cost_pico_usd: 75_000_000n,
    price: { source: 'given', input_usd_per_mtok: null, output_usd_per_mtok: null, cached_input_usd_per_mtok: null },
    attributes: {},
    prompt: 'hello',
    response: 'world',
    storage_bytes: 100,
    sandbox_seconds: 0,
    ...over,
  };
}

/** Returns an event of one span at a position in the log. */
export function anEvent(logSeq: number, span: Span = aSpan(), over: Partial<MeteredEvent> = {}): MeteredEvent {
  return {
    partition: 0,
    log_seq: logSeq,
    log_index: 0,
    org_id: span.org_id,
    trace_id: span.trace_id,
    event_hex: span.event_hex,
    received_at: span.received_at,
    spans: [span],
    retain: 'full',
    sample_reason: 'profile',
    usage: {
      org_id: span.org_id,
      agent_id: span.agent_id,
      key_id: '',
      hour: 0,
      last_received_at: 0,
      day: 0,
      model: span.model,
      department: span.department,
      realm: span.realm,
      events: 1,
      input_tokens: span.input_tokens,
      output_tokens: span.output_tokens,
      storage_bytes: span.storage_bytes,
      sandbox_micros: 0n,
      cost_pico_usd: span.cost_pico_usd,
      outcomes: NO_OUTCOMES,
      correction: 0n,
    },
    ...over,
  };
}
