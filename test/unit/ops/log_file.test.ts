// Rotation of the children's logs: it keeps them within their bound, and never stops the
// supervisor.
import type fs from 'node:fs';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';

/** The disk during a copy; null when there is room. */
const disk = vi.hoisted((): { full: NodeJS.ErrnoException | null } => ({ full: null }));
vi.mock('node:fs', async (original) => {
  const real = await original<typeof fs>();
  return {
    ...real,
    copyFileSync: (from: string, to: string) => {
      if (disk.full === null) {
        real.copyFileSync(from, to);
        return;
      }
      real.writeFileSync(to, 'the first part');
      throw disk.full;
    },
  };
});
const { LogFollower } = await import('../../../ops/launch/process/log_file.ts');

const TOO_LARGE = 'x'.repeat(21 * 1024 * 1024);
let folder = '';
let file = '';
let shown: string[] = [];

beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'millrace-log-'));
  file = path.join(folder, 'api.log');
  shown = [];
  disk.full = null;
  writeFileSync(file, '');
});
afterEach(() => {
  rmSync(folder, { recursive: true });
});

/** Follows the file, which then grows beyond its bound. */
function follow() {
  const follower = new LogFollower((line) => shown.push(line));
  follower.add('api', file, () => null, true);
  writeFileSync(file, `${TOO_LARGE}\n`, { flag: 'a' });
  return follower;
}

it('a full log file is copied and begins anew', () => {
  const follower = follow();
  follower.turn();
  expect([statSync(file).size, statSync(`${file}.1`).size]).toEqual([0, TOO_LARGE.length + 1]);
  follower.stop();
  expect(shown).toEqual([]);
});

it('a log file without room for a copy is emptied, the partial copy removed, and that is logged', () => {
  disk.full = Object.assign(new Error('ENOSPC: no space left on device'), { code: 'ENOSPC' });
  writeFileSync(`${file}.1`, 'the one before');
  const follower = follow();
  follower.turn();
  expect([statSync(file).size, existsSync(`${file}.1`)]).toEqual([0, false]);
  expect(readFileSync(`${file}.2`, 'utf8')).toBe('the one before');
  expect(shown).toEqual([`[api] ${file} is emptied without a copy: ENOSPC: no space left on device`]);
  writeFileSync(file, `${TOO_LARGE}\n`, { flag: 'a' });
  disk.full = null;
  follower.stop();
  expect([statSync(file).size, statSync(`${file}.1`).size]).toEqual([0, TOO_LARGE.length + 1]);
});

it('a log file that cannot be rotated stops nothing, and the others are rotated', () => {
  const follower = new LogFollower((line) => shown.push(line));
  const gone = path.join(folder, 'gone.log');
  follower.add('gone', gone, (line) => line, true);
  follower.add('api', file, (line) => line, true);
  mkdirSync(gone);
  writeFileSync(file, 'still heard\n', { flag: 'a' });
  follower.turn();
  follower.turn();
  follower.stop();
  expect(shown.filter((line) => line.startsWith('[gone]'))).toHaveLength(1);
  expect(shown).toContain('[api] still heard');
});
