// The environment of a measurement: the machine, the versions of the programs, and the commit.
import { execFileSync } from 'node:child_process';
import { cpus, loadavg, platform, release, tmpdir, totalmem } from 'node:os';
import path from 'node:path';
import { isUnjournaledExt4 } from '../../ops/platform/clickhouse/spread.ts';
import { findNatsServer } from '../../ops/launch/nats/install.ts';
import type { Results } from './results.ts';
import { sqlRunner } from './store.ts';

const ROOT = path.resolve(import.meta.dirname, '../..');

/** Returns the output of a command; null when it cannot be run or fails. */
function output(command: string, args: readonly string[]): string | null {
  try {
    return execFileSync(command, args, { cwd: ROOT, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim();
  } catch {
    return null;
  }
}

export const machineFacts = (): Results['machine'] => ({
  cpu: cpus()[0]?.model.trim() ?? 'unknown',
  cores: cpus().length,
  memory_bytes: totalmem(),
  platform: platform(),
  kernel: release(),
  load_before: loadavg()[0] ?? 0,
});

/** Returns the commit of this tree, and whether it has uncommitted changes. */
export function commitFacts(): Pick<Results, 'commit' | 'dirty'> {
  const commit = output('git', ['rev-parse', 'HEAD']);
  const changes = output('git', ['status', '--porcelain']);
  return { commit: commit ?? '', dirty: changes === null ? null : changes !== '' };
}

/** Returns the first line of a report: when, which code, which machine. */
export function runLine(began: string): string {
  const { cpu, cores, memory_bytes } = machineFacts();
  const { commit, dirty } = commitFacts();
  const code =
    commit === ''
      ? 'an unknown commit'
      : `commit ${commit.slice(0, 10)}${dirty === true ? ' with changes beside it' : ''}`;
  // File operations are expensive there, so the figures include that disk.
  const disk = isUnjournaledExt4(tmpdir()) ? ', ext4 without a journal' : '';
  return `${began}, ${code}; ${cpu}, ${cores} cores, ${Math.round(memory_bytes / 1024 ** 3)} GiB${disk}, Node ${process.versions.node}; service and load generator share it`;
}

/** Returns the version of the nats-server that a service would run; null when there is none. */
export async function natsVersion(): Promise<string | null> {
  try {
    const binary = await findNatsServer(() => undefined);
    return /v(\d\S+)/.exec(output(binary, ['-v']) ?? '')?.[1] ?? null;
  } catch {
    return null;
  }
}

export const clickhouseVersion = async (clickhouseUrl: string | null): Promise<string | null> =>
  clickhouseUrl === null ? null : await sqlRunner(clickhouseUrl)('SELECT version()');
