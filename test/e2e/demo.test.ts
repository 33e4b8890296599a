import { spawn } from 'node:child_process';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { startTarget, type Target } from '../bench/target.ts';

const DEMO = path.resolve(import.meta.dirname, '../../ops/demo/demo.ts');

let target: Target;

beforeAll(async () => {
  target = await startTarget();
});

afterAll(async () => {
  await target.stop();
});

async function runDemo(...args: string[]): Promise<{ code: number | null; output: string }> {
  const child = spawn(
    process.execPath,
    [DEMO, '--url', target.url, '--key', target.key, '--at', '2026-01-31T12:00:00Z', ...args],
    {
      stdio: ['ignore', 'pipe', 'inherit'],
    },
  );
  const output = text(child.stdout);
  const code = await new Promise<number | null>((resolve) => child.once('exit', resolve));
  return { code, output: await output };
}

it('the demo shows every run that it sent, with sums that add up, and adds nothing when it is sent again', async () => {
  const first = await runDemo();
  expect(first.output).toMatch(/197 traces \(19 failed\), 2,680 spans: 714 model calls, 1,247 tool calls, 197 roots/);
  expect(first.output).toMatch(/its sums match what was sent/);
  expect(first.code).toBe(0);
  const again = await runDemo();
  expect(again.output).toMatch(/197 of these traces were here before/);
  expect(again.output).toMatch(/197 traces \(19 failed\), 2,680 spans/);
  expect(again.code).toBe(0);
});

it('the demo says in one line why it cannot run', async () => {
  const child = spawn(process.execPath, [DEMO, '--url', target.url, '--key', 'sk_svc_nobody_has_this_key'], {
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  const [complaint, code] = await Promise.all([
    text(child.stderr),
    new Promise<number | null>((resolve) => child.once('exit', resolve)),
  ]);
  expect(code).toBe(1);
  expect(complaint).toMatch(/^GET \/v1\/traces: 401 unauthenticated: .*\n$/);
});
