// The decode stage truncates the prompts of an organization that limits their tokens (max_prompt_tokens).
import { expect, it } from 'vitest';
import { estimateTokens } from '../../../pipeline/domain/text/tokens.ts';
import { createPriceBook } from '../../../pipeline/domain/pricing/pricing.ts';
import { foldTexts, unfoldTexts } from '../../../pipeline/domain/text/text_refs.ts';
import { createDecodeStage } from '../../../pipeline/stages/decode.ts';
import { anthropicToolUse, customTool, langChainRun, openAiAnswer, withField } from '../formats/payloads.ts';
import { decode, decodeOne } from './decoding.ts';

const bounded = createDecodeStage({
  prices: createPriceBook(() => []),
  maxPromptTokens: (org) => (org === 'org_a' ? 100 : null),
  redactorOf: () => null,
});
const long = 'The agent walked to the river and back again. '.repeat(100);

it('a conversation is truncated to the limit, stays valid JSON and is marked as truncated', () => {
  const messages = [
    { role: 'system', content: 'Short.' },
    { role: 'user', content: long },
    { role: 'user', content: 'last' },
  ];
  const span = decodeOne('chatcompletion', withField(openAiAnswer(), ['request', 'messages'], messages), bounded);
  const kept = JSON.parse(span.prompt) as { content: string }[];
  expect(kept).toHaveLength(2);
  expect(kept[0]?.content).toBe('Short.');
  expect(long.startsWith(kept[1]?.content ?? 'x')).toBe(true);
  expect(span.prompt.length).toBeGreaterThan(250);
  expect(span.prompt.length).toBeLessThan(650);
  expect(span.attributes['prompt_truncated']).toBe(true);
  expect(span.input_tokens).toBe(10);
});

it.each([
  ['a text', { input: long, prompt: long, note: 'kept' }],
  ['JSON', { input: { question: long } }],
  ['the messages of a model call', { span_kind: 'llm', model: 'gpt-4o', messages: [{ role: 'user', content: long }] }],
])('attributes that repeat a truncated prompt are truncated with it: %s', (_, attributes) => {
  const span = decodeOne('custom', customTool({ event_type: 'step', attributes }), bounded);
  expect(span.attributes).toMatchObject({ prompt_truncated: true });
  expect(JSON.stringify(span.attributes).length).toBeLessThan(3 * span.prompt.length);
  const stored = foldTexts(span.attributes, span.prompt, span.response);
  expect(JSON.stringify(stored)).not.toContain('river');
  expect(unfoldTexts(stored, span.prompt, span.response)).toEqual(span.attributes);
  if ('messages' in attributes) expect(span.attributes['messages']).toEqual(JSON.parse(span.prompt));
  else expect(span.attributes['input']).toBe(span.prompt);
});

it.each([
  [
    'parts',
    'messages',
    [
      {
        role: 'user',
        content: [
          { type: 'text', text: 'First.' },
          { type: 'text', text: long },
        ],
      },
    ],
  ],
  ['a pair', 'chain', [['human', long]]],
  ['a text alone', 'chain', [long]],
] as const)('a message whose text is in %s is truncated to the limit', (_, format, messages) => {
  const event = format === 'chain' ? langChainRun() : anthropicToolUse();
  const span = decodeOne(format, withField(event, ['request', 'messages'], messages), bounded);
  expect(span.attributes['prompt_truncated']).toBe(true);
  const kept = JSON.parse(span.prompt) as unknown[];
  expect(JSON.stringify(kept)).toContain('The agent walked to the river');
  expect(span.prompt.length).toBeGreaterThan(250);
  expect(span.prompt.length).toBeLessThan(650);
});

it('a prompt that starts with words of many tokens is truncated to the limit', () => {
  const dense = '川へ歩いて帰った。'.repeat(100) + long.repeat(3);
  const span = decodeOne('custom', customTool({ attributes: { input: dense } }), bounded);
  expect(estimateTokens(span.prompt)).toBeLessThanOrEqual(110);
  expect(estimateTokens(span.prompt)).toBeGreaterThan(50);
});

it('the prompts of the tools of a chain are truncated to the limit', () => {
  const [, tool] = decode(
    'chain',
    withField(langChainRun(), ['intermediate_steps'], [[`search(${long})`, 'found']]),
    bounded,
  );
  expect([tool?.name, tool?.attributes['prompt_truncated'], (tool?.prompt.length ?? 0) < 650]).toEqual([
    'search',
    true,
    true,
  ]);
});

it('a plain prompt is truncated to the limit, and a short one stays as it is', () => {
  const span = decodeOne('custom', customTool({ attributes: { input: long } }), bounded);
  expect(long.startsWith(span.prompt) && span.prompt.length < 650).toBe(true);
  expect(decodeOne('chatcompletion', openAiAnswer(), bounded).attributes).not.toHaveProperty('prompt_truncated');
});
