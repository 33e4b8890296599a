// Blocks of the Native format, read back from the real engine: the same rows land alike as a block
// and as JSON lines, for every type of column that travels in a block.
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { classifyStoreError, type ClickHouse, createClickHouse } from '../../../sql/client/client.ts';
import { type BlockColumn, type Cell, type Cells, encodeBlock } from '../../../sql/client/native_block.ts';
import { SPANS, SPAN_TEXTS, TRACES, USAGE_EVENTS } from '../../../sql/stores/landing_tables.ts';
import { createTestDatabase, type TestDatabase } from '../../support/clickhouse.ts';
import { CELLS } from '../../support/native_cells.ts';

const TIMEOUT_MS = 60_000;

const USED = [SPANS, SPAN_TEXTS, TRACES, USAGE_EVENTS].flatMap(({ block }) => block.map(({ type }) => type));
const COLUMNS: readonly BlockColumn[] = [
  { name: 'n', type: 'UInt32' },
  ...Object.keys(CELLS).map((type, index) => ({ name: `c${index}`, type })),
];
const STRUCTURE = COLUMNS.map(({ name, type }) => `${name} ${type}`).join(', ');
const NAMES = COLUMNS.map(({ name }) => name).join(', ');

let database: TestDatabase;
let client: ClickHouse;

beforeAll(async () => {
  database = await createTestDatabase({ empty: true });
  client = createClickHouse({ url: database.url });
});
afterAll(async () => {
  await client.close();
  await database.drop();
});

async function land(table: string, format: string, body: string | Buffer): Promise<void> {
  await database.run(`CREATE OR REPLACE TABLE ${table} (${STRUCTURE}) ENGINE = MergeTree ORDER BY n`);
  await client.execute({
    name: 'test',
    sql: `INSERT INTO ${table} (${NAMES}) FORMAT ${format}`,
    body,
    timeoutMs: TIMEOUT_MS,
  });
}

/** Returns a row as a JSON line. */
const line = (row: Cells): string => JSON.stringify(row.map((cell, index) => asText(cell, COLUMNS[index]?.type ?? '')));

/** Returns a cell as the engine reads it from JSON. */
function asText(cell: Cell, type: string): unknown {
  if (Array.isArray(cell)) return cell.map((one) => asText(one as Cell, /^Array\((.+)\)$/.exec(type)?.[1] ?? ''));
  const scale = /^Decimal\(\d+, (\d+)\)$/.exec(type)?.[1];
  if (typeof cell === 'bigint') return decimalText(cell, Number(scale));
  if (type === 'UInt64' && typeof cell === 'string') return String(BigInt(`0x${cell}`));
  if (typeof cell !== 'number') return cell;
  if (type === 'Date') return timeText(cell * 86_400_000).slice(0, 10);
  if (type.startsWith('DateTime(')) return timeText(cell * 1000).slice(0, 19);
  return type.includes('DateTime64') ? timeText(cell) : cell;
}

const timeText = (milliseconds: number): string => new Date(milliseconds).toISOString().replace('T', ' ').slice(0, 23);

function decimalText(scaled: bigint, scale: number): string {
  const digits = String(scaled < 0n ? -scaled : scaled).padStart(scale + 1, '0');
  return `${scaled < 0n ? '-' : ''}${digits.slice(0, -scale)}.${digits.slice(-scale)}`;
}

const readBack = (table: string): Promise<string> =>
  database.run(`SELECT ${COLUMNS.map(({ name }) => `hex(toString(${name}))`).join(', ')} FROM ${table} ORDER BY n`);

describe('a block', () => {
  it('has a generator for every type that landed rows use', () => {
    expect(USED.filter((type) => !Object.hasOwn(CELLS, type))).toEqual([]);
  });

  it('reads back as the same rows as JSON lines', async () => {
    const row = fc.tuple(...Object.values(CELLS));
    await fc.assert(
      fc.asyncProperty(fc.array(row, { minLength: 1, maxLength: 300 }), async (rows) => {
        const numbered = rows.map((cells, index): Cells => [index, ...cells]);
        await land('as_block', 'Native', encodeBlock(COLUMNS, numbered));
        await land('as_lines', 'JSONCompactEachRow', numbered.map(line).join('\n'));
        expect(await readBack('as_block')).toBe(await readBack('as_lines'));
      }),
      { numRuns: 15 },
    );
  });

  it('stores U+FFFD for half of a surrogate pair, so that every text is UTF-8', async () => {
    const halves = ['\ud800', 'x\udc00y', '語\ud83d', '\udc00\ud800'];
    await database.run('CREATE OR REPLACE TABLE halves (n UInt32, t String) ENGINE = Memory');
    const columns = [
      { name: 'n', type: 'UInt32' },
      { name: 't', type: 'String' },
    ];
    const body = encodeBlock(
      columns,
      halves.map((half, index): Cells => [index, half]),
    );
    const sql = "INSERT INTO halves SELECT n, t FROM input('n UInt32, t String') FORMAT Native";
    await client.execute({ name: 'test', sql, body, timeoutMs: TIMEOUT_MS });
    const stored = await database.run('SELECT t FROM halves ORDER BY n');
    expect(stored).toBe(halves.map((half) => `${half.toWellFormed()}\n`).join(''));
  });

  it.each([1, 256, 257, 65_536, 65_537])('keeps %i different names apart', async (names) => {
    const columns = [
      { name: 'n', type: 'UInt32' },
      { name: 'name', type: 'LowCardinality(String)' },
    ];
    const rows = Array.from({ length: names + 10 }, (_, index): Cells => [index, `name ${index % names}`]);
    await database.run('CREATE OR REPLACE TABLE names (n UInt32, name LowCardinality(String)) ENGINE = Memory');
    const sql = "INSERT INTO names SELECT n, name FROM input('n UInt32, name LowCardinality(String)') FORMAT Native";
    await client.execute({ name: 'test', sql, body: encodeBlock(columns, rows), timeoutMs: TIMEOUT_MS });
    expect(
      await database.run(`SELECT count(), countIf(name = concat('name ', toString(n % ${names}))) FROM names`),
    ).toBe(`${rows.length}\t${rows.length}\n`);
  });
});

describe('a cell that does not fit its column', () => {
  it.each<[string, Cell]>([
    ['UInt16', 65_536],
    ['UInt16', -1],
    ['UInt32', 0.5],
    ['UInt32', 2 ** 32],
    ['UInt64', -1],
    ['Int64', 2 ** 53],
    ['Int64', NaN],
    ['Decimal(18, 12)', 10n ** 18n],
    ['UInt64', '0123456789ABCDEF'],
    ['UInt64', '1'],
    ['Int8', 128],
    ['Date', 65_536],
    ["DateTime('UTC')", -1],
    ["DateTime64(3, 'UTC')", 0.5],
    ['Decimal(18, 6)', 1],
    ['Decimal(38, 12)', 10n ** 38n],
    ['String', null],
    ['Array(String)', 'text'],
  ])('of type %s is refused: %s', (type, cell) => {
    const columns = [{ name: 'c', type }];
    let thrown: unknown;
    try {
      encodeBlock(columns, [[cell]]);
    } catch (error) {
      thrown = error;
    }
    expect(classifyStoreError(thrown)).toBe('refused');
  });

  it('throws for a type that no landed table has', () => {
    expect(() => encodeBlock([{ name: 'c', type: 'UUID' }], [])).toThrow('no encoding for columns of type UUID');
  });
});
