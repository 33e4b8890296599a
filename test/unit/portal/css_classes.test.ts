// Every class that a page's code takes from a style sheet exists there, and every class there is used.
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { classNames } from '../../../ops/launch/portal/class_names.ts';

const WEB = path.resolve(import.meta.dirname, '../../../api/portal/web');
const files = readdirSync(WEB, { recursive: true, encoding: 'utf8' });

interface Sheet {
  /** Path of the style sheet below web/. */
  file: string;
  /** Names of the import in the code. */
  uses: Set<string>;
  /** True where the code also picks a class by a value at run time. */
  dynamic: boolean;
}

function usesOf(): Map<string, Sheet> {
  const sheets = new Map<string, Sheet>();
  for (const file of files.filter((name) => name.endsWith('.tsx') || name.endsWith('.ts'))) {
    const code = readFileSync(path.join(WEB, file), 'utf8');
    for (const [, name = '', from = ''] of code.matchAll(/import (\w+) from '([^']+\.module\.css)'/g)) {
      const sheetFile = path.join(path.dirname(file), from);
      const sheet = sheets.get(sheetFile) ?? { file: sheetFile, uses: new Set(), dynamic: false };
      for (const [, used = ''] of code.replaceAll(/from '[^']+'/g, '').matchAll(new RegExp(`\\b${name}\\.(\\w+)`, 'g')))
        sheet.uses.add(used);
      sheet.dynamic ||= new RegExp(`\\b${name}\\[`).test(code);
      sheets.set(sheetFile, sheet);
    }
  }
  return sheets;
}

function classesOf(file: string): Set<string> {
  const css = readFileSync(path.join(WEB, file), 'utf8').replaceAll(/\/\*[\s\S]*?\*\//g, '');
  const selectors = css.match(/[^{}]+(?=\{)/g) ?? [];
  return new Set(selectors.flatMap((one) => [...one.matchAll(/\.([A-Za-z_][\w-]*)/g)].map(([, name = '']) => name)));
}

describe('the style sheets of the pages', () => {
  const sheets = [...usesOf().values()];

  it('have every class that the code names', () => {
    const missing = sheets.flatMap(({ file, uses }) => {
      const known = classesOf(file);
      return [...uses].filter((name) => !known.has(name)).map((name) => `${file}: ${name}`);
    });
    expect(missing).toEqual([]);
  });

  it('have no class that no code names', () => {
    const unused = sheets
      .filter(({ dynamic }) => !dynamic)
      .flatMap(({ file, uses }) =>
        [...classesOf(file)].filter((name) => !uses.has(name)).map((name) => `${file}: ${name}`),
      );
    expect(unused).toEqual([]);
  });

  it('get names in a build that no two classes share, and the same names in the next build', () => {
    const all = sheets.flatMap(({ file }) => [...classesOf(file)].map((name) => [name, path.join(WEB, file)] as const));
    const named = (): string[] => {
      const nameOf = classNames(WEB);
      return all.map(([name, file]) => nameOf(name, file));
    };
    expect(new Set(named()).size).toBe(all.length);
    expect(named()).toEqual(named());
    const nameOf = classNames(WEB);
    const many = Array.from({ length: 2000 }, (_, at) => nameOf(`class_${at}`, path.join(WEB, sheets[0]?.file ?? '')));
    expect(new Set(many).size).toBe(many.length);
  });

  it('are each imported by some code', () => {
    const imported = new Set(sheets.map(({ file }) => file));
    expect(files.filter((name) => name.endsWith('.module.css') && !imported.has(name))).toEqual([]);
  });
});
