// Tables of the command line: what is cut, what is left out and what stays whole in narrow terminals.
import { describe, expect, it } from 'vitest';
import { barOf, localTime } from '../../../api/sdk/src/cli/output.ts';
import { type Column, tableOf, wrapped } from '../../../api/sdk/src/cli/table.ts';

interface Row {
  id: string;
  name: string;
  agent: string;
  cost: number;
}

const COLUMNS: readonly Column<Row>[] = [
  { title: 'ID', value: ({ id }) => id, isWhole: true },
  { title: 'NAME', value: ({ name }) => name },
  { title: 'AGENT', value: ({ agent }) => agent, isOptional: true },
  { title: 'COST', value: ({ cost }) => `$${cost}`, isRight: true, isOptional: true },
];
const ROW: Row = {
  id: '0af7651916cd43dd8448eb211c80319c',
  name: 'an answer to a long question',
  agent: 'helper',
  cost: 1,
};

const lines = (width: number, rows: readonly Row[] = [ROW]): string[] =>
  tableOf(rows, COLUMNS, { width, hasColours: false }).split('\n');

describe('a table', () => {
  it('shows everything where there is room', () => {
    expect(lines(120)).toEqual([
      'ID                                NAME                          AGENT   COST',
      '0af7651916cd43dd8448eb211c80319c  an answer to a long question  helper    $1',
    ]);
  });

  it('cuts texts first, then leaves out optional columns from the right, and never cuts an id', () => {
    expect(lines(64)[1]).toBe('0af7651916cd43dd8448eb211c80319c  an answer to a …  helper    $1');
    expect(lines(60)).toEqual([
      'ID                                NAME                AGENT',
      '0af7651916cd43dd8448eb211c80319c  an answer to a lo…  helper',
    ]);
    expect(lines(48)[1]).toBe('0af7651916cd43dd8448eb211c80319c  an answer to …');
    expect(lines(20)[1]).toBe('0af7651916cd43dd8448eb211c80319c  an answ…');
  });

  it('counts characters that take two columns of the terminal, and those that take none', () => {
    const [, wide, narrow] = lines(120, [
      { ...ROW, name: '東京の天気 🧀' },
      { ...ROW, name: 'e\u0301te\u0301' },
    ]);
    expect(wide).toContain('  東京の天気 🧀  helper');
    expect(narrow).toContain(`  e\u0301te\u0301${' '.repeat(10)}  helper`);
  });

  it('colours titles and cells, and lets no control character of a record through', () => {
    const columns: Column<Row>[] = [
      { title: 'NAME', value: ({ name }) => name, tone: () => 'bad' },
      { title: 'AGENT', value: ({ agent }) => agent },
    ];
    expect(tableOf([{ ...ROW, name: 'a\u001b[2J' }], columns, { width: 80, hasColours: true })).toBe(
      '\u001b[1mNAME \u001b[0m  \u001b[1mAGENT\u001b[0m\n\u001b[31ma [2J\u001b[0m  helper',
    );
  });
});

it('a text is wrapped at spaces, and a longer word has a line of its own', () => {
  expect(wrapped('one two three-four-five six', 8)).toEqual(['one two', 'three-four-five', 'six']);
});

it('a time has no year in the current one, and no seconds in another', () => {
  const now = new Date(2026, 10, 26);
  expect(localTime(new Date(2026, 0, 2, 3, 4, 5).toISOString(), now)).toBe('01-02 03:04:05');
  expect(localTime(new Date(2025, 11, 31, 23, 59, 58).toISOString(), now)).toBe('2025-12-31 23:59');
});

it('a bar shows the share in the largest amount, and a trace of a small one', () => {
  expect([barOf(10, 10).length, barOf(5, 10).length, barOf(0.001, 10), barOf(0, 10), barOf(0, 0)]).toEqual([
    20,
    10,
    '▏',
    '',
    '',
  ]);
});
