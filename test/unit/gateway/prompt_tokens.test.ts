import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { promptTokens, textTokens } from '../../../api/intake/gateway/prompt_tokens.ts';
import { readCall } from '../../../api/intake/gateway/call.ts';
import { labelsOf } from '../../../api/intake/gateway/labels.ts';
import { estimateTokens } from '../../../pipeline/domain/text/tokens.ts';

const fileOf = (name: string): string => readFileSync(new URL(`../../../${name}`, import.meta.url), 'utf8');
const parts = (text: string): string[] =>
  Array.from({ length: 8 }, (_, i) => text.slice(i * 3000, i * 3000 + 3000)).filter(({ length }) => length > 1000);

describe('the tokens of a prompt before its call', () => {
  const exact = (text: string): number =>
    (text.match(/[^\n]+\n*|\n+/g) ?? []).reduce((sum, line) => sum + estimateTokens(line), 0);

  test.each([
    ['prose', 'README.md'],
    ['prose with links', 'CHANGELOG.md'],
    ['a decision', 'ops/adr/0025-gateway.md'],
    ['TypeScript', 'api/intake/gateway/handler.ts'],
    ['JSON', 'package.json'],
  ])('%s is estimated within a third of what the tokenizer counts', (_, name) => {
    for (const text of parts(fileOf(name))) {
      const ratio = textTokens(text) / exact(text);
      expect(ratio).toBeGreaterThan(0.75);
      expect(ratio).toBeLessThan(1.34);
    }
  });

  test.each([
    ['Chinese', '大型语言模型是一种由具有大量参数的神经网络组成的语言模型。'],
    ['Japanese', '東京は日本の首都であり、世界最大の都市圏の一つです。'],
    ['Russian', 'Москва является столицей России и крупнейшим городом страны.'],
    ['Thai', 'กรุงเทพมหานครเป็นเมืองหลวงของประเทศไทย'],
    ['German', 'Die größte Übung für müde Jäger ist der Weg über die Brücke.'],
    ['emoji', 'great 😀 work 🎉 done 👍 ok'],
  ])('%s is estimated within the half of what the tokenizer counts', (_, text) => {
    const ratio = textTokens(text.repeat(4)) / estimateTokens(text.repeat(4));
    expect(ratio).toBeGreaterThan(0.5);
    expect(ratio).toBeLessThan(1.6);
  });

  test('a text of a million characters is estimated from samples as its parts are', () => {
    const text = 'What is the capital of France, and since when? ';
    const whole = textTokens(text.repeat(25_000));
    expect(whole / (textTokens(text.repeat(100)) * 250)).toBeCloseTo(1, 1);
  });

  test('an empty text has no tokens', () => {
    expect(textTokens('')).toBe(0);
  });

  test('images count nothing, tools and earlier tool calls count as text', () => {
    const tokensOf = (request: object): number =>
      promptTokens(readCall('messages', labelsOf({}), Buffer.from(JSON.stringify({ model: 'm', ...request }))));
    const text = { type: 'text', text: 'hello there' };
    const plain = tokensOf({ messages: [{ role: 'user', content: [text] }] });
    const image = { type: 'image', source: { type: 'base64', data: 'x'.repeat(9000) } };
    expect(tokensOf({ messages: [{ role: 'user', content: [text, image] }] })).toBe(plain);
    const tools = [{ name: 'weather', input_schema: { type: 'object' } }];
    expect(tokensOf({ messages: [{ role: 'user', content: [text] }], tools })).toBeGreaterThan(plain + 5);
    const use = { type: 'tool_use', name: 'weather', input: { city: 'Paris', unit: 'celsius' } };
    expect(tokensOf({ messages: [{ role: 'assistant', content: [text, use] }] })).toBeGreaterThan(plain + 5);
  });
});
