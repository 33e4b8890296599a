// The choice of a nats-server: one of a version that the service is tested with, wherever it is
// found.
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { findNatsServer } from '../../../ops/launch/nats/install.ts';
import { removeDir, tempDir } from '../../support/temp.ts';

let folder: string;
beforeEach(() => {
  folder = tempDir('nats-install');
});
afterEach(() => {
  vi.unstubAllEnvs();
  removeDir(folder);
});

/** Creates a nats-server below the test's folder that answers -v with this text. */
function put(name: string, answer: string): string {
  const binary = path.join(folder, name, 'nats-server');
  mkdirSync(path.dirname(binary), { recursive: true });
  writeFileSync(binary, `#!/bin/sh\nprintf '%b' '${answer}'\n`);
  chmodSync(binary, 0o755);
  return binary;
}

const found = (): Promise<string> => findNatsServer(() => undefined, path.join(folder, 'tools'));

it.each([
  'nats-server: v2.10.0\\n',
  'nats-server: v2.15.1\\n',
  'nats-server: v2.12.0-RC.2\\n',
  'nats-server: v2.10.27-1~deb13u1\\n',
])('a nats-server on PATH that answers %j is used', async (answer) => {
  const binary = put('path', answer);
  vi.stubEnv('PATH', `${path.dirname(binary)}:${process.env['PATH'] ?? ''}`);
  expect(await found()).toBe(binary);
});

it.each([
  'nats-server: v2.9.25\\n',
  'nats-server: v1.4.1\\n',
  'nats-server: v3.0.0\\n',
  'nats-server: v20.10.0\\n',
  'nats-server: 2.10.0\\n',
  'nats-server: dev\\n',
  'nats-streaming-server: v2.10.0\\n',
  'error near v2.10.1 of something else\\n',
  '',
])('a nats-server on PATH that answers %j is not used', async (answer) => {
  const binary = put('path', answer);
  put('tools', 'nats-server: v2.10.0\\n');
  vi.stubEnv('PATH', `${path.dirname(binary)}:${process.env['PATH'] ?? ''}`);
  expect(await found()).not.toBe(binary);
});
