// Landing writes each field of a span into the column of its name, with the flags that hold, and the
// words of its texts.
import { describe, expect, it } from 'vitest';
import type { Span } from '../../../pipeline/domain/traces/span.ts';
import { hasSpanFlag, SPAN_FLAGS, type SpanFlag } from '../../../pipeline/domain/traces/span_flags.ts';
import { spanCells, textCells } from '../../../pipeline/landing/row_encoders.ts';
import { SPAN_TEXTS, SPANS } from '../../../sql/stores/landing_tables.ts';
import { aSpan } from '../../support/spans.ts';

function rowOf(span: Span, sampled = true): Record<string, unknown> {
  const cells = spanCells(span, { partition: 1, log_seq: 2, log_index: 3 }, 4, sampled);
  expect(cells).toHaveLength(SPANS.block.length);
  return Object.fromEntries(SPANS.block.map(({ name }, index) => [name, cells[index]]));
}

const flagsOf = (over: Partial<Span>, sampled = true): string[] => {
  const flags = rowOf(aSpan(over), sampled)['flags'] as number;
  return Object.keys(SPAN_FLAGS).filter((flag) => hasSpanFlag(flags, flag as SpanFlag));
};

it('writes every text and number of a span into the column of its name', () => {
  const span = aSpan({
    provider: 'a',
    environment: 'b',
    service: 'c',
    release: 'd',
    prompt_name: 'e',
    prompt_version: 'f',
    session_id: 'g',
    first_token_ms: 71,
    cache_write_tokens: 72,
    reasoning_tokens: 73,
    cached_input_tokens: 74,
  });
  const row = rowOf(span);
  const simple = Object.entries(span).filter(([, value]) => typeof value === 'string' || typeof value === 'number');
  const sameNamed = simple.filter(([name]) => name in row && name !== 'sandbox_seconds');
  expect(sameNamed.length).toBeGreaterThan(25);
  for (const [name, value] of sameNamed) expect([name, row[name]]).toEqual([name, value]);
});

it('stores one bit for each flag, within the column', () => {
  const bits = Object.values(SPAN_FLAGS);
  expect(new Set(bits).size).toBe(bits.length);
  for (const bit of bits) expect([Math.log2(bit) % 1, bit < 2 ** 16]).toEqual([0, true]);
});

it.each<[string, Partial<Span>, boolean, string[]]>([
  ['a stored call', {}, true, ['has_texts']],
  ['a call whose texts sampling dropped', {}, false, ['texts_sampled_out']],
  ['a step without texts', { prompt: '', response: '' }, false, []],
  ['a judge call', { attributes: { judge_call: true } }, true, ['has_texts', 'judge_call']],
  ['a replayed call', { attributes: { replay_of: 'trc_1' } }, true, ['has_texts', 'replay']],
  ['a call of a dataset run', { attributes: { dataset_run: 'eval_1' } }, true, ['has_texts', 'dataset_run']],
  [
    'an estimated call without a price',
    { attributes: { tokens_estimated: true, price_missing: true } },
    true,
    ['has_texts', 'usage_estimated', 'price_missing'],
  ],
  [
    'a redacted and truncated call',
    { redacted: ['email'], attributes: { prompt_truncated: true } },
    true,
    ['has_texts', 'prompt_truncated', 'redacted'],
  ],
  ['a step of a chain', { attributes: { times_estimated: true } }, true, ['has_texts', 'times_estimated']],
])('marks %s', (_name, over, sampled, flags) => {
  expect(flagsOf(over, sampled)).toEqual(['recorded', ...flags]);
});

it.each<[string, Partial<Span>, boolean]>([
  ['a failed span with an error', { outcome: 'error', attributes: { error: { code: 1 } } }, true],
  ['a span that timed out with a message', { outcome: 'timeout', attributes: { error_message: 'late' } }, true],
  ['a failed span with other attributes', { outcome: 'error', attributes: { errors: 1 } }, false],
  ['a span that succeeded after an error', { attributes: { error: 'handled' } }, false],
])('says whether attributes may name an error: %s', (_name, over, named) => {
  expect(rowOf(aSpan(over))['error_named']).toBe(named);
});

describe('textCells', () => {
  const place = { partition: 1, log_seq: 2, log_index: 3 };

  it('writes prompt and response with their words and the number of these', () => {
    const span = aSpan({ prompt: '[{"role":"user","content":"Red Straße"}]', response: 'red, yes' });
    const cells = textCells(span, place, 4, 30) ?? [];
    expect(cells).toHaveLength(SPAN_TEXTS.block.length);
    expect(Object.fromEntries(SPAN_TEXTS.block.map(({ name }, index) => [name, cells[index]]))).toMatchObject({
      span_id: span.span_id,
      name: span.name,
      flags: SPAN_FLAGS.recorded | SPAN_FLAGS.has_texts,
      prompt: span.prompt,
      response: 'red, yes',
      words: 'red strasse red yes',
      dl: 4,
      partition: 1,
      log_seq: 2,
      log_index: 3,
      log_sub: 4,
    });
  });

  it('writes the beginning of the response of a failed span as its error text', () => {
    const errorText = (over: Partial<Span>): unknown =>
      (textCells(aSpan(over), place, 4, 30) ?? [])[SPAN_TEXTS.block.findIndex(({ name }) => name === 'error_text')];
    expect(errorText({ outcome: 'success', response: 'fine' })).toBe('');
    expect(errorText({ outcome: 'error', response: '  it broke ' })).toBe('it broke');
    expect(errorText({ outcome: 'timeout', response: ' ' })).toBe('');
    expect(errorText({ outcome: 'error', response: ` ${'😀'.repeat(2001)}` })).toBe('😀'.repeat(2000));
  });

  it('returns null for a span without prompt and response', () => {
    expect(textCells(aSpan({ prompt: '', response: '' }), place, 4, 30)).toBeNull();
  });
});
