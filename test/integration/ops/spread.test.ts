// Tests that ClickHouse spreads parts over the disk exactly when the file system has no journal,
// and the number of files in a part. The kernel reports the file system.
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync } from 'node:fs';
import path from 'node:path';
import { inject, describe, expect, it } from 'vitest';
import { isUnjournaledExt4, spreadParts } from '../../../ops/platform/clickhouse/spread.ts';
import { createClickHouse } from '../../../sql/client/client.ts';
import { startTestEngine } from '../../support/clickhouse.ts';
import { removeDir } from '../../support/temp.ts';

/**
 * Returns the type of the file system that holds the folder, and whether the kernel has a journal
 * open for it.
 */
function seen(folder: string): { type: string; journaled: boolean } {
  const [source = '', type = ''] = execFileSync('findmnt', [
    '--noheadings',
    '--output',
    'SOURCE,FSTYPE',
    '--target',
    folder,
  ])
    .toString()
    .trim()
    .split(/\s+/);
  let journals: string[] = [];
  try {
    journals = readdirSync('/proc/fs/jbd2');
  } catch {
    // The kernel has no journal driver.
  }
  return { type, journaled: journals.some((name) => name.startsWith(`${path.basename(source)}-`)) };
}

const onLinux = describe.skipIf(process.platform !== 'linux');

onLinux('parts on a disk without a journal', () => {
  it('tables that are spread over disks have the attribute, no others have it, and elsewhere nothing changes', async () => {
    const folder = mkdtempSync(path.join(inject('folder'), 'spread-'));
    const tables = ['a0/a0b1', 'a0/a0b2', 'ff/ffb1'].map((name) => path.join(folder, 'store', name));
    for (const table of tables) mkdirSync(path.join(table, 'all_1_1_0'), { recursive: true });
    const { type, journaled } = seen(folder);
    const expected = type === 'ext4' && !journaled;
    expect(isUnjournaledExt4(folder)).toBe(expected);
    expect(await spreadParts(folder)).toBe(expected);
    if (expected) {
      const attributes = (dirs: string[]): string[] =>
        execFileSync('lsattr', ['-d', ...dirs])
          .toString()
          .trim()
          .split('\n')
          .map((line) => line.split(/\s/)[0] ?? '');
      expect(attributes(tables).every((flags) => flags.includes('T'))).toBe(true);
      expect(
        attributes([path.join(folder, 'store'), path.join(tables[0] ?? '', 'all_1_1_0')]).some((flags) =>
          flags.includes('T'),
        ),
      ).toBe(false);
    }
    removeDir(folder);
  });

  it('tables are left alone on a disk that does not support spreading, and where none exist', async () => {
    const folder = mkdtempSync(path.join(inject('folder'), 'spread-'));
    expect(await spreadParts(folder)).toBe(false);
    mkdirSync(path.join(folder, 'store'));
    expect(await spreadParts(folder)).toBe(false);
    expect(isUnjournaledExt4('/proc')).toBe(false);
    removeDir(folder);
  });
});

describe('a part', () => {
  it('a part has its skip indexes in one file', async () => {
    const engine = await startTestEngine();
    const client = createClickHouse({ url: engine.url });
    try {
      await client.createDatabase();
      const run = (sql: string) => client.execute({ name: 'test', sql, timeoutMs: 10_000 });
      await run(
        'CREATE TABLE t (k UInt64, a UInt64, s String, INDEX ix_a a TYPE minmax, INDEX ix_s s TYPE bloom_filter) ENGINE = MergeTree ORDER BY k',
      );
      await run('INSERT INTO t SELECT number, number * 2, toString(number) FROM numbers(20000)');
      const [part] = await client.rows<{ path: string }>({
        name: 'test',
        sql: "SELECT path FROM system.parts WHERE table = 't' AND active",
        timeoutMs: 10_000,
      });
      expect(readdirSync(part?.path ?? '').filter((name) => name.startsWith('skp_idx'))).toEqual(['skp_idx.packed']);
      const [found] = await client.rows<{ rows: string; skipped: string }>({
        name: 'test',
        sql: "SELECT toString(count()) AS rows, toString(sum(k)) AS skipped FROM t WHERE a = 30002 AND s = '15001'",
        timeoutMs: 10_000,
      });
      expect(found).toEqual({ rows: '1', skipped: '15001' });
    } finally {
      await client.close();
      await engine.remove();
    }
  });
});
