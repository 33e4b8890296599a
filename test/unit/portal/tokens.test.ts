// The palette of the portal: the contrast of every pair of colours that may meet, computed from the
// style sheet (WCAG 2.2: 4.5 for text, 3 for graphics and borders of controls).
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';

const sheet = readFileSync(new URL('../../../api/portal/web/styles/tokens.css', import.meta.url), 'utf8');

/** Returns the colours of the rule that begins with a selector. */
function colours(selector: string): Map<string, string> {
  const from = sheet.indexOf(`${selector} {`);
  const rule = sheet.slice(from, sheet.indexOf('}', from));
  return new Map(
    [...rule.matchAll(/--([a-z0-9-]+): (#[0-9a-f]{6});/g)].map(([, name = '', value = '']) => [name, value]),
  );
}

const light = colours(':root');
const dark = colours(":root[data-theme='dark']");
const darkBySystem = colours(":root:not([data-theme='light'])");
const THEMES = [
  ['light', light],
  ['dark', dark],
] as const;
const SURFACES = ['bg', 'surface', 'sunken'];
const TEXTS = ['text', 'text-2', 'text-3', 'accent', 'ok', 'warn', 'error'];
const GRAPHICS = [
  'line-strong',
  ...[1, 2, 3, 4, 5, 6, 7, 8].map((n) => `series-${n}`),
  ...['llm', 'tool', 'event', 'app', 'judge'].map((kind) => `kind-${kind}`),
];

function luminance(colour: string): number {
  const [r = 0, g = 0, b = 0] = [1, 3, 5].map((at) => {
    const part = Number.parseInt(colour.slice(at, at + 2), 16) / 255;
    return part <= 0.040_45 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

function contrast(theme: Map<string, string>, a: string, b: string): number {
  const [high = 0, low = 0] = [a, b].map((name) => luminance(theme.get(name) ?? '')).toSorted((x, y) => y - x);
  return (high + 0.05) / (low + 0.05);
}

describe('the palette of the portal', () => {
  it('has the same colours for the dark theme by choice and by the setting of the system', () => {
    expect([...darkBySystem]).toEqual([...dark]);
    expect([...light.keys()].toSorted()).toEqual([...dark.keys()].toSorted());
  });

  it.each(THEMES)('gives text a contrast of at least 4.5 on every surface (%s)', (_, theme) => {
    const pairs = [
      ...TEXTS.flatMap((text) => SURFACES.map((surface) => [text, surface] as const)),
      ...['ok', 'warn', 'error'].map((tone) => [tone, `${tone}-soft`] as const),
      ...['text', 'text-2', 'text-3'].map((text) => [text, 'accent-soft'] as const),
      ['on-accent', 'accent'] as const,
      ['on-operator', 'operator'] as const,
    ];
    const low = pairs.filter(([a, b]) => contrast(theme, a, b) < 4.5).map(([a, b]) => `${a} on ${b}`);
    expect(low).toEqual([]);
  });

  it.each(THEMES)('gives graphics and borders of controls a contrast of at least 3 (%s)', (_, theme) => {
    const low = GRAPHICS.flatMap((name) => SURFACES.map((surface) => [name, surface] as const))
      .filter(([a, b]) => contrast(theme, a, b) < 3)
      .map(([a, b]) => `${a} on ${b}: ${contrast(theme, a, b).toFixed(2)}`);
    expect(low).toEqual([]);
  });
});
