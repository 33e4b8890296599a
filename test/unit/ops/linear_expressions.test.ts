// The lint rules that keep the product's own regular expressions linear apply to every file of the
// product, and find what they should.
import { ESLint, Linter } from 'eslint';
import tseslint from 'typescript-eslint';
import { describe, expect, it } from 'vitest';

const { linearExpressions } = (await import(new URL('../../../eslint.config.js', import.meta.url).href)) as {
  linearExpressions: Linter.Config;
};
const RULES = ['regexp/no-super-linear-backtracking', 'regexp/no-super-linear-move', 'no-restricted-syntax'] as const;

function findsIn(code: string): string[] {
  const config = [{ languageOptions: { parser: tseslint.parser } }, linearExpressions] as Linter.Config[];
  return new Linter().verify(code, config, 'pipeline/example.ts').map(({ ruleId }) => ruleId ?? 'no rule');
}

describe('the lint of regular expressions', () => {
  it.each([
    'api/main.ts',
    'ops/bootstrap.mjs',
    'ops/platform/logger.ts',
    'pipeline/domain/judging/llm_prompt.ts',
    'schemas/codec.ts',
    'sql/client/client.ts',
  ])('the lint of regular expressions covers every part of the product: %s', async (file) => {
    const config = (await new ESLint().calculateConfigForFile(file)) as Linter.Config;
    for (const rule of RULES) expect([rule, [config.rules?.[rule]].flat()[0]]).toEqual([rule, 2]);
  });

  it.each([
    [
      'a fence read by nested repetitions',
      'export const x = /^```[a-z]*\\s*\\n([\\s\\S]*?)\\n?\\s*```$/i;',
      'regexp/no-super-linear-backtracking',
    ],
    [
      'a repetition that is begun at every place',
      'export const x = (t: string) => t.replace(/\\s+$/, "");',
      'regexp/no-super-linear-move',
    ],
    [
      'an expression put together at run time',
      'export const x = (p: string) => new RegExp(p, "g");',
      'no-restricted-syntax',
    ],
  ])('the lint of regular expressions finds %s', (_what, code, rule) => {
    expect(findsIn(code)).toContain(rule);
  });

  it('the lint of regular expressions accepts an expression with one way to match', () => {
    expect(findsIn('export const x = /:\\/\\/[^\\s/@]+@/g;')).toEqual([]);
  });
});
