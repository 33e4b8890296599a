// Situations in which `npm start` refuses to start: each is one clear line that names the setting,
// and exit code 1.
import { createServer } from 'node:net';
import { expect, it } from 'vitest';
import { runStart } from '../support/service.ts';

async function refused(env: Record<string, string>, ...args: string[]): Promise<string> {
  const run = runStart({ env, command: ['ops/launch/start.ts', ...args] });
  expect(await run.exited).toEqual({ code: 1, signal: null });
  const lines = run.stderr().trimEnd().split('\n');
  expect(lines).toHaveLength(1);
  return lines[0] ?? '';
}

async function takenPort(): Promise<{ port: number; free: () => void }> {
  const server = createServer();
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', () => {
      resolve();
    });
  });
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('no port');
  return { port: address.port, free: () => server.close() };
}

it.each(['SERVICE_PORT', 'SERVICE_CLICKHOUSE_PORT'])(
  'refuses to start when the port of %s is taken',
  async (setting) => {
    const { port, free } = await takenPort();
    expect(await refused({ [setting]: String(port) })).toBe(
      `${setting}: port ${port} on 127.0.0.1 is in use by another program; stop it, or set ${setting} to another port (0 picks a free one)`,
    );
    free();
  },
);

it('refuses to start with an invalid setting', async () => {
  expect(await refused({ SERVICE_PORT: 'abc' })).toBe(
    'SERVICE_PORT: got "abc"; must be a whole number from 0 to 65535',
  );
});

it('refuses to start with an unreachable external NATS, without showing its token', async () => {
  const line = await refused({ SERVICE_NATS_URL: 'nats://very-secret@127.0.0.1:1' });
  expect(line).toMatch(/^SERVICE_NATS_URL: NATS at 127\.0\.0\.1:1: .*refused/i);
  expect(line).not.toContain('very-secret');
});

it('refuses to start with an unreachable external ClickHouse, without showing its password', async () => {
  const line = await refused({ SERVICE_CLICKHOUSE_URL: 'http://app:very-secret@127.0.0.1:1/millrace' });
  expect(line).toMatch(/^SERVICE_CLICKHOUSE_URL: ClickHouse at http:\/\/127\.0\.0\.1:1: .*ECONNREFUSED/);
  expect(line).not.toContain('very-secret');
});

it('refuses to start when the data folder cannot be created', async () => {
  expect(await refused({ SERVICE_DATA_DIR: '/dev/null/data' })).toMatch(
    /^SERVICE_DATA_DIR: \/dev\/null\/data cannot be created or written: /,
  );
});

it('refuses to start with an unknown argument', async () => {
  expect(await refused({}, '--prot=9000')).toBe(
    'npm start takes no arguments, and got "--prot=9000"; settings are environment variables: ops/deploy/env.example (--help says more)',
  );
});

it('prints the usage for --help and starts nothing', async () => {
  const run = runStart({ command: ['ops/launch/start.ts', '--help'] });
  expect(await run.exited).toEqual({ code: 0, signal: null });
  expect(run.stdout()).toMatch(/^usage: npm start\n[^]*ops\/deploy\/env\.example/);
  expect(run.stdout()).not.toContain('First start');
});
