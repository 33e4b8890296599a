import { describe, expect, it } from 'vitest';
import { createPriceBook } from '../../../pipeline/domain/pricing/pricing.ts';
import { PiiRedactor } from '../../../pipeline/domain/pii/pii.ts';
import type { Span } from '../../../pipeline/domain/traces/span.ts';
import { foldTexts } from '../../../pipeline/domain/text/text_refs.ts';
import { usageOf } from '../../../pipeline/domain/budgets/usage.ts';
import { createDecodeStage } from '../../../pipeline/stages/decode.ts';
import type { SourceFormat } from '../../../schemas/codec.ts';
import { PII_KINDS } from '../../../schemas/records/pii_policy.ts';

const NOW = Date.parse('2026-02-01T00:00:00.000Z');
const MAIL = 'ann@example.com';
const CARD = '4111 1111 1111 1111';
const redactor = new PiiRedactor({ kinds: PII_KINDS, custom: [], hash_key: null });

/** The spans of an event, as an org that has everything redacted stores them, or as one that has nothing. */
function decoded(
  format: SourceFormat,
  event: Record<string, unknown>,
  options: { redact?: boolean; max?: number } = {},
): Span[] {
  const stage = createDecodeStage({
    prices: createPriceBook(() => []),
    maxPromptTokens: () => options.max ?? null,
    redactorOf: () => (options.redact === false ? null : redactor),
  });
  const body = JSON.stringify(event);
  const place = { partition: 0, log_seq: 1, log_index: 0 };
  const [outcome] = stage.run([
    { ...place, org_id: 'org_a', format, event_hex: '00000000000000aa', trace_id: 'trc_1', received_at: NOW, body },
  ]);
  if (outcome?.kind !== 'emit') throw new Error(JSON.stringify(outcome));
  return outcome.out.spans;
}

const chat = {
  request: {
    model: 'gpt-4o',
    messages: [
      { role: 'system', content: 'Be brief.' },
      { role: 'user', content: `I am\n"Ann", ${MAIL}, card ${CARD}` },
      { role: 'assistant', content: [{ type: 'text', text: `Hello ${MAIL}` }] },
    ],
    user: MAIL,
  },
  response: {
    choices: [
      {
        index: 0,
        message: {
          role: 'assistant',
          content: `Dear ${MAIL}`,
          tool_calls: [
            {
              id: 'c1',
              type: 'function',
              function: { name: 'mail', arguments: JSON.stringify({ to: MAIL, phone: '5551234567' }) },
            },
          ],
        },
        finish_reason: 'stop',
      },
    ],
  },
  outcome: 'error',
  duration_ms: 10,
  tags: ['vip', MAIL],
  attributes: {
    user_id: MAIL,
    session_id: `s-${MAIL}`,
    agent_id: 'agent@example.com',
    error_message: `no such user ${MAIL}`,
    [MAIL]: 1,
  },
};

const custom = {
  name: `mail to ${MAIL}`,
  event_type: 'tool',
  outcome: 'success',
  duration_ms: 1,
  attributes: {
    input: { to: MAIL, body: 'x'.repeat(60), phone: '5551234567' },
    output: `${'sent '.repeat(20)}to ${MAIL}`,
    card: 4111111111111111,
    outcomes: { leads: 3 },
  },
};

describe('what decode gives of an org that has personal data redacted', () => {
  it.each([
    ['chatcompletion', chat],
    ['custom', custom],
    [
      'app',
      { event_type: 'click', user_id: MAIL, session_id: MAIL, url: `/u?mail=${MAIL}`, attributes: { ip: '10.0.0.1' } },
    ],
    [
      'messages',
      {
        request: { model: 'claude', system: `For ${MAIL}`, messages: [{ role: 'user', content: MAIL }], max_tokens: 9 },
        response: { content: [{ type: 'text', text: MAIL }] },
        duration_ms: 1,
        outcome: 'success',
      },
    ],
    [
      'chain',
      {
        request: { model: 'gpt-4o', messages: [{ role: 'user', content: MAIL }] },
        chain_name: 'c',
        agent_name: 'a',
        intermediate_steps: [
          [`look up ${MAIL}`, `found ${CARD}`],
          ['plain', 'plain'],
        ],
        duration_ms: 1,
        outcome: 'error',
      },
    ],
  ] as [SourceFormat, Record<string, unknown>][])('holds none of it: %s', (format, event) => {
    const spans = decoded(format, event);
    const stored = JSON.stringify(spans, (key, value: unknown) =>
      typeof value === 'bigint' ? String(value) : key === 'agent_id' ? '' : value,
    );
    expect(stored).not.toContain(MAIL);
    expect(stored).not.toContain('4111');
    expect(stored).not.toContain('5551234567');
    expect(spans[0]?.redacted).toContain('email');
  });

  it('keeps the conversation valid JSON, with its words around the finds', () => {
    const [span] = decoded('chatcompletion', chat);
    expect(JSON.parse(span?.prompt ?? '')).toEqual([
      { role: 'system', content: 'Be brief.' },
      { role: 'user', content: 'I am\n"Ann", [EMAIL], card [CARD]' },
      { role: 'assistant', content: [{ type: 'text', text: 'Hello [EMAIL]' }] },
    ]);
    expect(span).toMatchObject({
      response: 'Dear [EMAIL]',
      user_id: '[EMAIL]',
      session_id: '[EMAIL]',
      agent_id: 'agent@example.com',
      tags: ['vip', '[EMAIL]'],
    });
    expect(span?.attributes).toMatchObject({
      error_message: 'no such user [EMAIL]',
      '[EMAIL]': 1,
      agent_id: 'agent@example.com',
    });
    expect(span?.redacted).toEqual(['card', 'email', 'phone']);
  });

  it('is counted as what was sent', () => {
    for (const [format, event] of [
      ['chatcompletion', chat],
      ['custom', custom],
    ] as const) {
      const usage = (redact: boolean) =>
        usageOf({ org_id: 'org_a', received_at: NOW, spans: decoded(format, event, { redact }) });
      expect(usage(true)).toEqual(usage(false));
    }
  });

  it('has its texts stored once still: attributes refer to the redacted prompt and response', () => {
    const [span] = decoded('custom', custom);
    const folded = foldTexts(span?.attributes ?? {}, span?.prompt ?? '', span?.response ?? '');
    expect(folded).toMatchObject({
      input: { $ref: 'prompt', $json: true },
      output: { $ref: 'response' },
      card: '[CARD]',
      outcomes: { leads: 3 },
    });
  });

  it.each([
    ['a JSON text, which is written anew', { input: `{ "phone": "5551234567", "to": "${MAIL}" }` }, {}],
    ['messages', { span_kind: 'llm', model: 'm', messages: [{ role: 'user', content: `I am ${MAIL}` }] }, {}],
    ['what is cut after it', { input: `for ${MAIL}: ${'word '.repeat(500)}` }, { max: 50 }],
    ['what is not well-formed', { input: `\ud800 ${MAIL}` }, {}],
  ])('leaves no copy of a text in the attributes that repeat it: %s', (_, attributes, options) => {
    const [span] = decoded('custom', { name: 'x', outcome: 'success', duration_ms: 1, attributes }, options);
    const { messages, input } = foldTexts(span?.attributes ?? {}, span?.prompt ?? '', span?.response ?? '');
    expect(messages ?? input).toMatchObject({ $ref: 'prompt' });
    expect(span?.prompt).toContain('[EMAIL]');
  });

  it('says for each span of a chain what was found in it', () => {
    const [own, first, second] = decoded('chain', {
      request: { model: 'gpt-4o', messages: [{ role: 'user', content: MAIL }] },
      chain_name: 'c',
      agent_name: 'a',
      intermediate_steps: [
        ['look up', CARD],
        ['plain', 'plain'],
      ],
      duration_ms: 1,
      outcome: 'error',
    });
    expect([own?.redacted, first?.redacted, second?.redacted]).toEqual([['email'], ['card'], []]);
    expect([first?.name, first?.response]).toEqual(['tool', '[CARD]']);
  });

  it('is cut after it is redacted, so that no half of a find is left', () => {
    for (let max = 5; max < 60; max += 1) {
      const [span] = decoded('chatcompletion', chat, { max });
      expect(span?.prompt).not.toMatch(/ann|4111/);
    }
  });

  it('is what was sent where nothing is found', () => {
    const plain = {
      name: 'step',
      outcome: 'success',
      duration_ms: 1,
      attributes: { a: [1, { b: 'c' }], input: 'hello' },
    };
    expect(decoded('custom', plain)).toEqual(decoded('custom', plain, { redact: false }));
  });
});
