// Small parts of the supervision of children: identity of a process, which log lines are shown, why
// a child ended.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { getPriority, tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { redactText } from '../../../ops/platform/logger.ts';
import { isAlive, startOf } from '../../../ops/launch/process/identity.ts';
import {
  LogFollower,
  errorsOfClickHouse,
  errorsOfNats,
  warningsOfRecords,
} from '../../../ops/launch/process/log_file.ts';
import { lastErrorLine, startNodeMain } from '../../../ops/launch/process/node_main.ts';
import { lowerPriority } from '../../../ops/launch/process/priority.ts';

const folder = mkdtempSync(path.join(tmpdir(), 'millrace-process-'));
afterAll(() => {
  rmSync(folder, { recursive: true });
});

describe('identity', () => {
  it('a process is distinguished from an earlier one with its pid', () => {
    const started = startOf(process.pid);
    expect(isAlive({ pid: process.pid, started: started ?? '' })).toBe(true);
    expect(isAlive({ pid: process.pid, started: 'another boot:1' })).toBe(false);
  });

  it('no process has a pid beyond the largest', () => {
    expect(startOf(2 ** 30)).toBeNull();
  });
});

it("a child's priority is lowered by the given amount, and one that has ended is no error", async () => {
  const child = spawn('sleep', ['60'], { detached: true, stdio: 'ignore' });
  const before = getPriority(child.pid);
  lowerPriority(child.pid, 0);
  expect(getPriority(child.pid)).toBe(before);
  lowerPriority(child.pid, before + 3);
  expect(getPriority(child.pid)).toBe(before + 3);
  child.kill('SIGKILL');
  await once(child, 'exit');
  lowerPriority(child.pid, before + 3);
  lowerPriority(undefined, 3);
});

describe('a child that is to say when it is ready', () => {
  const startChild = (script: string, readyMsMax: number) => {
    const entry = path.join(folder, 'main.mjs');
    writeFileSync(entry, script);
    const signal = new AbortController().signal;
    return startNodeMain({
      name: 'child',
      entry,
      env: process.env,
      logFile: path.join(folder, 'main.log'),
      signal,
      readyMsMax,
      stopMsMax: 1000,
    });
  };

  it('a child may take long to be ready as long as it reports that it is starting', async () => {
    // It takes longer than it is given by its own clock, and on a busy machine its first report may
    // be late.
    const child = await startChild(
      `
      setInterval(() => process.send({ starting: true }), 200);
      setTimeout(() => process.send({ ready: true, port: 7 }), 9000);
    `,
      8000,
    );
    expect(child.port).toBe(7);
    child.kill();
    await child.exited;
  });

  it('a child that reports nothing is ended', async () => {
    await expect(startChild('setInterval(() => process.send({ other: true }), 200);', 2000)).rejects.toThrow(
      'child was not ready and said nothing for 2 s',
    );
  });
});

describe('what the console shows of logs', () => {
  it.each([
    [
      'a warning with its cause',
      warningsOfRecords,
      '{"level":40,"msg":"trying again","err":{"message":"refused"}}',
      'trying again: refused',
    ],
    ['no information', warningsOfRecords, '{"level":30,"msg":"up"}', null],
    ['no line that is no record', warningsOfRecords, 'plain text', null],
    ['an error of nats-server', errorsOfNats, '[7] 2026/11/21 09:50:34.968450 [ERR] disk full', '[ERR] disk full'],
    ['no warning of nats-server', errorsOfNats, '[7] 2026/11/21 09:50:34.968450 [WRN] slow', null],
    [
      'what ends ClickHouse',
      errorsOfClickHouse,
      '2026.11.21 09:35:17 [ 1 ] {} <Fatal> BaseDaemon: signal 11',
      '<Fatal> BaseDaemon: signal 11',
    ],
    ['no failed query', errorsOfClickHouse, '2026.11.21 09:35:17 [ 1 ] {} <Error> executeQuery: Code: 62', null],
  ])('%s', (_what, filter, line, shown) => {
    expect(filter(line)).toBe(shown);
  });

  it('the console shows a log from the end of the file on, and only whole lines', () => {
    const file = path.join(folder, 'followed.log');
    const shown: string[] = [];
    writeFileSync(file, 'old\n');
    const follower = new LogFollower((line) => shown.push(line));
    follower.add('api', file, (line) => line, false);
    writeFileSync(file, 'new\nhal', { flag: 'a' });
    follower.turn();
    expect(shown).toEqual(['[api] new']);
    writeFileSync(file, 'f\n', { flag: 'a' });
    follower.turn();
    expect(shown).toEqual(['[api] new', '[api] half']);
    follower.stop();
  });
});

describe('why a child ended', () => {
  const file = path.join(folder, 'child.log');
  it.each([
    ['its own line', 'SERVICE_NATS_URL: got nothing\n', 'SERVICE_NATS_URL: got nothing'],
    ['a record', '{"level":60,"msg":"failed","err":{"message":"port taken"}}\n', 'failed: port taken'],
    [
      'a crash of Node',
      'node:internal\n    throw err\nTypeError: x is not a function\n    at main (file:1)\n\nNode.js v26.10.0\n',
      'TypeError: x is not a function',
    ],
    ['nothing', '', 'it wrote no reason'],
  ])('%s', (_what, text, reason) => {
    writeFileSync(file, `an earlier run\n${text}`);
    expect(lastErrorLine(file, 'an earlier run\n'.length)).toBe(reason);
  });
});

it('logs show no credentials of URLs, and no keys', () => {
  expect(redactText('connect http://app:pa55@127.0.0.1:8123/m with sk_svc_abc123')).toBe(
    'connect http://***@127.0.0.1:8123/m with sk_svc_***',
  );
});

it.each([
  ['a word of 2 MB', 'a'.repeat(2_000_000)],
  ['begins of URLs', 'a://'.repeat(500_000)],
  ['a user without an end', `a://${'u'.repeat(2_000_000)}`],
  ['parts of keys', 'sk_svc_'.repeat(300_000)],
])('credentials are found in time linear in the text: %s', (_what, text) => {
  expect(redactText(`${text} http://u:p@h`)).toContain('http://***@h');
});
