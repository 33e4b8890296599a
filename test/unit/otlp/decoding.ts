// OTLP spans as the decoder gives them, made from attributes or from what real instrumentations recorded
// (test/data/otlp_spans.json).
import { readFileSync } from 'node:fs';
import { expect } from 'vitest';
import { spansOf } from '../../../pipeline/domain/decode/decode.ts';
import { eventHex } from '../../../pipeline/domain/traces/ids.ts';
import { createPriceBook } from '../../../pipeline/domain/pricing/pricing.ts';
import type { Span } from '../../../pipeline/domain/traces/span.ts';

export type Fields = Record<string, unknown>;
interface Recorded {
  name: string;
  attributes: Fields;
}
export const RECORDED = JSON.parse(
  readFileSync(new URL('../../data/otlp_spans.json', import.meta.url), 'utf8'),
) as Record<string, Recorded[]>;
export const NOW = Date.parse('2026-02-01T00:00:00.000Z');
export const prices = createPriceBook(() => []);

export function decoded(span: Fields, resource: Fields = {}, scope = 'test'): Span {
  const body = JSON.stringify({
    resource: { attributes: resource },
    scope: { name: scope },
    span: {
      trace_id: '5b8efff798038103d269b633813fc60c',
      span_id: 'eee19b7ec3c1b174',
      name: 'a span',
      start_time_unix_nano: '1767225600000000000',
      end_time_unix_nano: '1767225600840999999',
      ...span,
    },
  });
  const raw = {
    org_id: 'org_a',
    format: 'otlp' as const,
    event_hex: eventHex(body),
    trace_id: 't',
    received_at: NOW,
    body,
  };
  const spans = spansOf({ prices, maxPromptTokens: () => null, redactorOf: () => null }, raw, JSON.parse(body));
  if (typeof spans === 'string' || spans[0] === undefined) throw new Error(JSON.stringify(spans));
  expect(spans).toHaveLength(1);
  return spans[0];
}
export const ofAttributes = (attributes: Fields, over: Fields = {}): Span => decoded({ attributes, ...over });
export const recorded = (library: string, index: number): Span => decoded({ ...RECORDED[library]?.[index] });
export const used = ({ kind, model, input_tokens, output_tokens, cached_input_tokens }: Span): unknown[] => [
  kind,
  model,
  input_tokens,
  output_tokens,
  cached_input_tokens,
];
export const SYSTEM = { role: 'system', content: 'Answer in one word.' };
export const QUESTION = [SYSTEM, { role: 'user', content: 'What is the capital of France?' }];
export const CALL = {
  'gen_ai.operation.name': 'chat',
  'gen_ai.provider.name': 'openai',
  'gen_ai.request.model': 'gpt-4o-mini',
};
