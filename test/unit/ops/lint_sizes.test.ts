// The lint rules that bound the lines of a file and of a function: they apply to every part of the
// product, and find what they are for.
import { ESLint, Linter } from 'eslint';
import tseslint from 'typescript-eslint';
import { describe, expect, it } from 'vitest';

const { sizes } = (await import(new URL('../../../eslint.config.js', import.meta.url).href)) as {
  sizes: Linter.Config[];
};

function findsIn(file: string, code: string): string[] {
  const config = [{ files: ['**/*.ts'], languageOptions: { parser: tseslint.parser } }, ...sizes] as Linter.Config[];
  return new Linter().verify(code, config, file).map(({ ruleId }) => ruleId ?? 'no rule');
}

const lines = (count: number): string =>
  Array.from({ length: count }, (_, at) => `export const x${at} = ${at};\n`).join('');
const aFunction = (count: number): string => `export function f() {\n${'// a comment\n'.repeat(count - 2)}}\n`;

describe('the lint of sizes', () => {
  it.each(['api/main.ts', 'ops/platform/logger.ts', 'pipeline/stage.ts', 'schemas/codec.ts', 'sql/client/client.ts'])(
    'allows 400 lines a file and 70 lines a function in every part of the product: %s',
    async (file) => {
      const config = (await new ESLint().calculateConfigForFile(file)) as Linter.Config;
      expect(config.rules?.['max-lines']).toEqual([2, 400]);
      expect(config.rules?.['max-lines-per-function']).toEqual([2, 70]);
    },
  );

  it('allows a test 400 lines a file and a suite of any length', async () => {
    const config = (await new ESLint().calculateConfigForFile('test/unit/sql/client.test.ts')) as Linter.Config;
    expect(config.rules?.['max-lines']).toEqual([2, 400]);
    expect(config.rules?.['max-lines-per-function']).toBeUndefined();
  });

  it('accepts a file of 400 lines and rejects one of 401', () => {
    expect(findsIn('pipeline/example.ts', lines(400))).toEqual([]);
    expect(findsIn('pipeline/example.ts', lines(401))).toEqual(['max-lines']);
    expect(findsIn('test/unit/example.test.ts', lines(401))).toEqual(['max-lines']);
  });

  it('accepts a function of 70 lines and rejects one of 71, comments included', () => {
    expect(findsIn('api/example.ts', aFunction(70))).toEqual([]);
    expect(findsIn('api/example.ts', aFunction(71))).toEqual(['max-lines-per-function']);
    expect(findsIn('test/unit/example.test.ts', aFunction(71))).toEqual([]);
  });
});
