// Filters on attributes match the JSON texts that their meaning says, whatever names and values they hold.
import fc from 'fast-check';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { z } from 'zod';
import {
  attributeConditions,
  type AttributePath,
  type FilterOp,
  type FilterValue,
  parseAttributePath,
} from '../../../sql/attribute_path.ts';
import { parseTemplate, readTemplate, renderTemplate } from '../../../sql/client/template.ts';
import { createTestDatabase, type TestDatabase } from '../../support/clickhouse.ts';
import { type ClickHouse, createClickHouse } from '../../../sql/client/client.ts';

let database: TestDatabase;
let client: ClickHouse;
const template = parseTemplate(
  'SELECT /*include attributes/conditions.sql*/ AS matches FROM (SELECT arrayJoin({all:Array(String)}) AS attributes)',
  readTemplate,
);
const row = z.object({ matches: z.coerce.boolean() });

beforeAll(async () => {
  database = await createTestDatabase();
  client = createClickHouse({ url: database.url });
});
afterAll(async () => {
  await client.close();
  await database.drop();
});

const pathOf = (field: string): AttributePath => {
  const parsed = parseAttributePath(field);
  if (!parsed.ok) throw new Error(parsed.message);
  return parsed.path;
};

async function matches(
  all: readonly unknown[],
  field: string,
  op: FilterOp,
  ...values: FilterValue[]
): Promise<boolean[]> {
  const attributes = attributeConditions([{ path: pathOf(field), op, values }]);
  const texts = all.map((value) => (typeof value === 'string' ? value : JSON.stringify(value)));
  const statement = renderTemplate(template, { attributes, all: texts });
  const rows = await client.rows({ name: 'test', ...statement, timeoutMs: 10_000 });
  return rows.map((found) => row.parse(found).matches);
}

const REGIONS = [{ region: 'eu' }, { region: 'us' }, { region: null }, {}, { region: 7 }, { region: { eu: 1 } }];

it.each<[FilterOp, FilterValue[], number[]]>([
  ['eq', ['eu'], [0]],
  ['ne', ['eu'], [1, 2, 3, 4, 5]],
  ['in', ['eu', 'us'], [0, 1]],
  ['not_in', ['eu', 'us'], [2, 3, 4, 5]],
  ['exists', [true], [0, 1, 4, 5]],
  ['exists', [false], [2, 3]],
  ['eq', [7], [4]],
  ['gt', ['eu'], [1, 5]],
  ['gte', [7], [4]],
  ['lt', [7], []],
])('%s %j matches %j', async (op, values, places) => {
  const found = await matches(REGIONS, 'attributes.region', op, ...values);
  expect(found.flatMap((holds, index) => (holds ? [index] : []))).toEqual(places);
});

it('finds a field whether its dots are part of a key or separate nested keys', async () => {
  const all = [
    { 'a.b.c': 1 },
    { a: { 'b.c': 1 } },
    { a: { b: { c: 1 } } },
    { 'a.b': { d: 1 } },
    { a: 1 },
    { a: { b: { c: 2 } } },
  ];
  expect(await matches(all, 'attributes.a.b.c', 'eq', 1)).toEqual([true, true, true, false, false, false]);
});

it('compares numbers in numbers and in texts, and booleans as words', async () => {
  const all = [{ n: 9 }, { n: 10 }, { n: '10' }, { n: 'ten' }, { n: true }, { n: 1e1 }];
  expect(await matches(all, 'attributes.n', 'gte', 10)).toEqual([false, true, true, false, false, true]);
  expect(await matches(all, 'attributes.n', 'eq', 10)).toEqual([false, true, true, false, false, true]);
  expect(await matches(all, 'attributes.n', 'eq', true)).toEqual([false, false, false, false, true, false]);
});

it('finds a number in every way in which JSON may write it', async () => {
  const written = ['5', '5.0', '50e-1', '0.5e1', '"5"', '"5.0"', '"05"', '"+5"'];
  const texts = written.flatMap((value) => [
    `{"n":${value}}`,
    `{ "n" : ${value} }`,
    `{"n":\t${value}}`,
    `{"n"\n:${value}}`,
  ]);
  expect(await matches(texts, 'attributes.n', 'eq', 5)).toEqual(texts.map(() => true));
  expect(await matches(texts, 'attributes.n', 'ne', 5)).toEqual(texts.map(() => false));
  const others = ['{"n":-5}', '{"n":15}', '{"n":[5]}', '{"m":5}', '{"m":{"n":5}}', '{"n":"5 "}', '{"n":null}'];
  expect(await matches(others, 'attributes.n', 'in', '5', 5)).toEqual(others.map(() => false));
});

it('matches the number that was written, and no other one', async () => {
  const number = fc.double({ noNaN: true, noDefaultInfinity: true });
  await fc.assert(
    fc.asyncProperty(number, number, async (value, other) => {
      const all = [{ n: value }, { n: String(value) }, { n: other }];
      expect(await matches(all, 'attributes.n', 'eq', value)).toEqual([true, true, other === value]);
    }),
    { numRuns: 60 },
  );
});

it('finds one of many values, as one or as nested keys', async () => {
  const all = [{ a: { b: 'x1' } }, { 'a.b': 49 }, { 'a.b': true }, { a: { b: 'x' } }, { a: { b: 'x99' } }];
  const values = [...Array.from({ length: 50 }, (_, index) => `x${index}`), 49, true];
  expect(await matches(all, 'attributes.a.b', 'in', ...values)).toEqual([true, true, true, false, false]);
});

it('reads no field of a text that is no JSON object', async () => {
  expect(await matches(['', 'x', '[]', '{"a":', '1'], 'attributes.a', 'exists', true)).toEqual(Array(5).fill(false));
});

it('matches the field that was written, for any key and text', async () => {
  const key = fc
    .string({ unit: 'grapheme', minLength: 1, maxLength: 12 })
    .filter((text) => text.isWellFormed() && !text.includes('.') && text !== '__proto__' && !text.includes('\0'));
  const text = fc
    .string({ unit: 'grapheme', maxLength: 20 })
    .filter((one) => one.isWellFormed() && !one.includes('\0'));
  await fc.assert(
    fc.asyncProperty(key, text, text, async (name, value, other) => {
      const all = [{ [name]: value }, { [name]: other }, { [`${name}x`]: value }];
      expect(await matches(all, `attributes.${name}`, 'eq', value)).toEqual([true, other === value, false]);
    }),
    { numRuns: 60 },
  );
});

it.each(['attributes.', 'region', 'attributes.a..b', `attributes.${'a.'.repeat(8)}a`, `attributes.${'x'.repeat(300)}`])(
  'refuses %s as a path',
  (field) => {
    expect(parseAttributePath(field).ok).toBe(false);
  },
);
