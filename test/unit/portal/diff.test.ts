// The comparison of two texts: complete on both sides, bounded, by lines, words and keys of JSON.
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { jsonDiff } from '../../../api/portal/web/diff/json_diff.ts';
import { DIFF_BOUNDS, type Diff, type DiffLine, type DiffRow } from '../../../api/portal/web/diff/shape.ts';
import { ROW_CHARS_MAX } from '../../../api/portal/web/diff/split_row.ts';
import { textDiff } from '../../../api/portal/web/diff/text_diff.ts';
import { foldRows, inOneColumn } from '../../../api/portal/web/diff/view_rows.ts';

/** Time plays no part in these tests. */
const BOUNDS = { ...DIFF_BOUNDS, ms: 60_000 };

const lineText = (line: DiffLine): string => line.parts.map(({ text }) => text).join('');

/** Returns the text of one side as its rows hold it. */
function textOf(rows: readonly DiffRow[], side: 'left' | 'right'): string {
  const lines: string[] = [];
  for (const row of rows) {
    const line = row[side];
    if (line === null) continue;
    if (line.number === 0) lines.push((lines.pop() ?? '') + lineText(line));
    else lines.push(lineText(line));
  }
  return lines.join('\n');
}

/** Returns the changed parts of one side. */
const changedOf = ({ rows }: Diff, side: 'left' | 'right'): string[] =>
  rows.flatMap((row) => row[side]?.parts.filter(({ changed }) => changed).map(({ text }) => text) ?? []);

const word = fc.constantFrom('a', 'bee', 'sea ', ' ', 'é', '👩‍🚀', '中文', '\t', '.', '\r');
const line = fc.array(word, { maxLength: 8 }).map((words) => words.join(''));
const text = fc.array(line, { maxLength: 12 }).map((lines) => lines.join('\n'));

describe('a comparison of two texts', () => {
  it('holds every line of both, in order, whatever the texts are', () => {
    fc.assert(
      fc.property(text, text, (left, right) => {
        const { rows, gave_up } = textDiff(left, right, BOUNDS);
        expect([textOf(rows, 'left'), textOf(rows, 'right'), gave_up]).toEqual([left, right, false]);
      }),
    );
  });

  it('finds no difference between a text and itself', () => {
    fc.assert(
      fc.property(text, (same) => {
        const { rows, removed, added } = textDiff(same, same, BOUNDS);
        expect([removed, added, rows.every(({ kind }) => kind === 'same')]).toEqual([0, 0, true]);
      }),
    );
  });

  it('counts as equal only rows whose sides are equal', () => {
    fc.assert(
      fc.property(text, text, (left, right) => {
        for (const { kind, ...row } of textDiff(left, right, BOUNDS).rows)
          if (kind === 'same') expect(row.left?.parts).toEqual(row.right?.parts);
      }),
    );
  });

  it('marks the words that changed within a line', () => {
    const diff = textDiff('Refund within 14 days.\nThanks.', 'Refund within 30 days.\nThanks.', BOUNDS);
    expect([changedOf(diff, 'left'), changedOf(diff, 'right')]).toEqual([['14'], ['30']]);
    expect(diff.rows.map(({ kind }) => kind)).toEqual(['changed', 'same']);
  });

  it('marks single characters of a script without spaces', () => {
    const diff = textDiff('退款在十四天内完成', '退款在三十天内完成', BOUNDS);
    expect(changedOf(diff, 'right')).not.toContain('退款在三十天内完成');
  });

  it('shows lines that have little in common as replaced, without marks between their words', () => {
    const diff = textDiff('one two three four', 'five, six, seven!', BOUNDS);
    expect(changedOf(diff, 'left')).toEqual(['one two three four']);
  });

  it('puts a changed line beside the line that it resembles', () => {
    const left = 'You are a careful assistant.\nAnswer in one sentence.';
    const right = 'Be brief.\nNever guess.\nYou are a helpful assistant.\nAnswer in one sentence.';
    const changed = textDiff(left, right, BOUNDS).rows.find(({ kind }) => kind === 'changed');
    expect([changed?.left, changed?.right].map((one) => one?.parts.find((part) => part.changed)?.text)).toEqual([
      'careful',
      'helpful',
    ]);
  });

  it('gives up past its bound of edits, says so and holds both texts whole', () => {
    const [left, right] = [0, 1].map((odd) => Array.from({ length: 200 }, (_, i) => `${i} ${odd}`).join('\n'));
    const diff = textDiff(left ?? '', right ?? '', { ...BOUNDS, line_edits: 100 });
    expect(diff.gave_up).toBe(true);
    expect([textOf(diff.rows, 'left'), textOf(diff.rows, 'right')]).toEqual([left, right]);
  });

  it('gives up past its bound of time', () => {
    expect(textDiff('a\nb', 'c\nd', { ...BOUNDS, ms: 0 }).gave_up).toBe(true);
  });

  it('counts changed lines whose words it did not compare', () => {
    const left = Array.from({ length: 60 }, (_, i) => `w${i}`).join(' ');
    const right = Array.from({ length: 60 }, (_, i) => `v${i}`).join(' ');
    expect(textDiff(left, right, { ...BOUNDS, word_edits: 10 }).unmarked).toBe(1);
  });

  it('compares 20,000 lines with some changes', () => {
    const lines = Array.from({ length: 20_000 }, (_, i) => `line ${i} of the log`);
    const changed = lines.map((one, i) => (i % 1000 === 0 ? `${one}, changed` : one));
    const diff = textDiff(lines.join('\n'), changed.join('\n'), BOUNDS);
    expect([diff.removed, diff.added, diff.gave_up]).toEqual([20, 20, false]);
  });

  it('cuts long lines into rows of bounded length without losing a character', () => {
    const long = fc
      .array(fc.constantFrom('word '.repeat(500), 'x'.repeat(2500), '😀'.repeat(1100), 'short '), { maxLength: 5 })
      .map((parts) => parts.join(''));
    fc.assert(
      fc.property(long, long, (left, right) => {
        const { rows } = textDiff(left, right, BOUNDS);
        expect([textOf(rows, 'left'), textOf(rows, 'right')]).toEqual([left, right]);
        for (const row of rows)
          for (const side of [row.left, row.right]) {
            if (side === null) continue;
            expect(lineText(side).length).toBeLessThanOrEqual(ROW_CHARS_MAX);
            expect(lineText(side).isWellFormed()).toBe(true);
          }
      }),
      { numRuns: 30 },
    );
  });
});

describe('a comparison of two JSON texts', () => {
  it('ignores the order of keys and white space', () => {
    const diff = jsonDiff('{"a":1,"b":{"c":[1,2],"d":null}}', '{ "b": {"d": null, "c": [1, 2]},\n "a": 1 }', BOUNDS);
    expect([diff.form, diff.removed, diff.added]).toEqual(['json', 0, 0]);
  });

  it('finds no difference between a value and itself with its keys in another order', () => {
    const reversed = (value: unknown): unknown =>
      Array.isArray(value)
        ? value.map(reversed)
        : typeof value === 'object' && value !== null
          ? Object.fromEntries(
              Object.entries(value)
                .reverse()
                .map(([key, item]) => [key, reversed(item)]),
            )
          : value;
    fc.assert(
      fc.property(fc.json(), (given) => {
        const { removed, added } = jsonDiff(given, JSON.stringify(reversed(JSON.parse(given))), BOUNDS);
        expect([removed, added]).toEqual([0, 0]);
      }),
    );
  });

  it('finds a difference between values that are not equal', () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.jsonValue(), (left, right) => {
        const diff = jsonDiff(JSON.stringify(left), JSON.stringify(right), BOUNDS);
        const isSame = fc.stringify(left) === fc.stringify(right);
        if (diff.removed + diff.added > 0) expect(isSame).toBe(false);
      }),
    );
  });

  it('marks a changed member by its key, an added item of a list, and a value of another type', () => {
    const left = { temperature: 0.2, tools: ['search'], stop: null };
    const right = { temperature: 0.7, tools: ['search', 'refund'], stop: { at: 1 } };
    const { rows } = jsonDiff(JSON.stringify(left), JSON.stringify(right), BOUNDS);
    const shown = rows
      .filter(({ kind }) => kind !== 'same')
      .map(({ kind, ...row }) => [kind, row.left && lineText(row.left), row.right && lineText(row.right)]);
    expect(shown).toEqual([
      ['changed', '  "temperature": 0.2', '  "temperature": 0.7'],
      ['added', null, '    "refund"'],
      ['removed', '  "stop": null', null],
      ['added', null, '  "stop": {'],
      ['added', null, '    "at": 1'],
      ['added', null, '  }'],
    ]);
  });

  it('compares a string with line breaks line by line', () => {
    const [left, right] = ['Be kind.\nBe brief.', 'Be kind.\nBe exact.'].map((content) =>
      JSON.stringify([{ role: 'system', content }]),
    );
    const diff = jsonDiff(left ?? '', right ?? '', BOUNDS);
    expect([changedOf(diff, 'left'), changedOf(diff, 'right')]).toEqual([['brief'], ['exact']]);
  });

  it('sees a difference between numbers that a double cannot hold', () => {
    const diff = jsonDiff('{"id":12345678901234567890}', '{"id":12345678901234567891}', BOUNDS);
    expect([diff.removed, diff.added]).toEqual([1, 1]);
  });

  it.each([
    ['is no JSON', '{"a":', '{"a":1}'],
    ['is nested too deeply', `${'['.repeat(200_000)}${']'.repeat(200_000)}`, '[]'],
  ])('compares as texts where one %s', (_, left, right) => {
    expect(jsonDiff(left, right, BOUNDS).form).toBe('text');
  });

  it('is not confused by keys that objects inherit', () => {
    const diff = jsonDiff('{"__proto__":1,"constructor":2}', '{"constructor":2}', BOUNDS);
    expect([diff.removed, diff.added]).toEqual([1, 0]);
  });
});

describe('the rows of the view', () => {
  const lines = Array.from({ length: 30 }, (_, i) => `line ${i}`);
  const { rows } = textDiff(lines.join('\n'), lines.with(15, 'another').join('\n'), BOUNDS);

  it('fold equal lines beyond three around a change, and unfold them', () => {
    const folded = foldRows(rows, new Set());
    expect(folded[0]).toEqual({ from: 0, to: 12 });
    expect(folded.at(-1)).toEqual({ from: 19, to: 30 });
    expect(foldRows(rows, new Set([0]))).toHaveLength(12 + folded.length - 1);
    expect(foldRows(rows, null)).toHaveLength(rows.length);
  });

  it('show every row once, folded or not', () => {
    fc.assert(
      fc.property(text, text, (left, right) => {
        const all = textDiff(left, right, BOUNDS).rows;
        const seen = foldRows(all, new Set()).flatMap((row) =>
          'at' in row ? [row.at] : Array.from({ length: row.to - row.from }, (_, i) => row.from + i),
        );
        expect(seen).toEqual(all.map((_, i) => i));
      }),
    );
  });

  it('hold both texts in one column, removed lines before added ones', () => {
    const both = textDiff('same\na\nb', 'same\nc\nd', BOUNDS).rows;
    expect(inOneColumn(both).map(({ kind }) => kind)).toEqual(['same', 'removed', 'removed', 'added', 'added']);
    expect([textOf(inOneColumn(both), 'left'), textOf(inOneColumn(both), 'right')]).toEqual([
      'same\na\nb',
      'same\nc\nd',
    ]);
  });
});
