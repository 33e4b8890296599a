// A nats-server of its own for a test file: it boots in some 20 ms, so nothing is shared.
import { mkdtempSync } from 'node:fs';
import path from 'node:path';
import { inject } from 'vitest';
import { type NatsServer, startNats } from '../../ops/launch/nats/server.ts';
import { removeDir } from './temp.ts';

export interface TestNats {
  /** Same after a restart. */
  url: string;
  /** The server that runs now. */
  readonly server: NatsServer;
  /** kill -9. */
  kill(): Promise<void>;
  /** SIGTERM. */
  stop(): Promise<void>;
  /** Starts it again on the same port and folder. */
  start(): Promise<void>;
  /** Stops it and removes its folder; safe to call twice. */
  remove(): Promise<void>;
}

/** Starts one. The caller's afterAll must call remove(). */
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
      // An orderly stop takes JetStream half a second, and its files are removed anyway.
      server.child.kill('SIGKILL');
      await server.exited;
      removeDir(folder);
    },
  };
}
