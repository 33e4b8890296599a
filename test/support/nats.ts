// A separate nats-server for each test file: it boots in about 20 ms, so nothing is shared.
import { mkdtempSync } from 'node:fs';
import path from 'node:path';
import { inject } from 'vitest';
import { type NatsServer, startNats } from '../../ops/launch/nats/server.ts';
import { removeDir } from './temp.ts';

export interface TestNats {
  /** Unchanged by a restart. */
  url: string;
  /** The server process that runs now. */
  readonly server: NatsServer;
  /** Sends SIGKILL. */
  kill(): Promise<void>;
  /** Sends SIGTERM. */
  stop(): Promise<void>;
  /** Starts the server again on the same port and folder. */
  start(): Promise<void>;
  /** Stops the server and removes its folder. Idempotent. */
  remove(): Promise<void>;
}

/** Starts a server. The caller's afterAll must call remove(). */
export async function startTestNats(options: { sync?: string; storeMaxBytes?: number } = {}): Promise<TestNats> {
  const folder = mkdtempSync(path.join(inject('folder'), 'nats-'));
  const boot = (port: number): Promise<NatsServer> =>
    startNats({
      binary: inject('natsBinary'),
      dataDir: path.join(folder, 'nats'),
      logFile: path.join(folder, 'nats.log'),
      port,
      sync: options.sync ?? '1s',
      token: 'test-nats-token',
      ...(options.storeMaxBytes === undefined ? {} : { storeMaxBytes: options.storeMaxBytes }),
    });
  let server = await boot(0);
  const { url, port } = server;
  return {
    url,
    get server() {
      return server;
    },
    async kill() {
      server.child.kill('SIGKILL');
      await server.exited;
    },
    stop: () => server.stop(),
    async start() {
      server = await boot(port);
    },
    async remove() {
      // SIGKILL, because an orderly stop takes JetStream half a second and its files are removed
      // anyway.
      server.child.kill('SIGKILL');
      await server.exited;
      removeDir(folder);
    },
  };
}
