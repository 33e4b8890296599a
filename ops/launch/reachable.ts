// Checks of external NATS and ClickHouse servers before anything starts, so that a wrong address or
// password is one clear line.
import { request } from 'node:http';
import { request as requestTls } from 'node:https';
import { text as readText } from 'node:stream/consumers';
import type { Env } from '../platform/env.ts';
import { connectNats } from '../platform/nats/connect.ts';

const WAIT_MS = 3000;
const NATS_MIN = [2, 10] as const;

/**
 * Checks that NATS answers, is version 2.10 or newer, and has JetStream.
 * @throws Error with one line that names the setting
 */
export async function checkNats(url: string): Promise<void> {
  const nc = await connectNats({ url, name: 'millrace-check', waitMs: WAIT_MS }).catch((error: unknown) => {
    throw new Error(`SERVICE_NATS_URL: ${error instanceof Error ? error.message : String(error)}`);
  });
  const version = nc.info?.version ?? '0.0';
  const jetstream = nc.info?.jetstream ?? false;
  const address = nc.getServer();
  await nc.close();
  const [major = 0, minor = 0] = version.split('.').map(Number);
  if (major < NATS_MIN[0] || (major === NATS_MIN[0] && minor < NATS_MIN[1])) {
    throw new Error(
      `SERVICE_NATS_URL: NATS at ${address} is version ${version}; ${NATS_MIN.join('.')} or newer is needed`,
    );
  }
  if (!jetstream) throw new Error(`SERVICE_NATS_URL: NATS at ${address} runs without JetStream (start it with -js)`);
}

/**
 * Checks that the external ClickHouse answers, if there is one; of several shards at least one, because the others may
 * come back later.
 * @throws Error with one line that names the setting
 */
export async function checkStore(
  env: Pick<Env, 'SERVICE_CLICKHOUSE_URL' | 'SERVICE_CLICKHOUSE_SHARDS'>,
): Promise<void> {
  const { SERVICE_CLICKHOUSE_URL: url, SERVICE_CLICKHOUSE_SHARDS: shards } = env;
  if (url !== undefined) await checkClickHouse('SERVICE_CLICKHOUSE_URL', url);
  if (shards === undefined) return;
  const checks = shards.flatMap(({ urls }) => urls).map((one) => checkClickHouse('SERVICE_CLICKHOUSE_SHARDS', one));
  await Promise.any(checks).catch((error: unknown) => {
    throw error instanceof AggregateError ? error.errors[0] : error;
  });
}

/**
 * Checks that ClickHouse answers a query of the URL's user.
 * @throws Error with one line that names the setting
 */
async function checkClickHouse(setting: string, url: string): Promise<void> {
  const { username, password, origin, protocol } = new URL(url);
  const options = {
    auth: `${decodeURIComponent(username) || 'default'}:${decodeURIComponent(password)}`,
    agent: false,
    timeout: WAIT_MS,
    headers: { connection: 'close' },
  };
  const refuse = (why: string): Error => new Error(`${setting}: ClickHouse at ${origin}: ${why}`);
  await new Promise<void>((resolve, reject) => {
    const req = (protocol === 'https:' ? requestTls : request)(`${origin}/?query=SELECT%201`, options, (res) => {
      readText(res).then(
        (text) => {
          if (res.statusCode === 200 && text.trim() === '1') resolve();
          else reject(refuse(`${String(res.statusCode)} ${text.trim().split('\n')[0]?.slice(0, 200) ?? ''}`));
        },
        (error: unknown) => {
          reject(refuse(String(error)));
        },
      );
    });
    req.on('timeout', () => req.destroy(new Error(`no answer within ${WAIT_MS / 1000} s`)));
    req.on('error', (error) => {
      reject(refuse(error.message || ('code' in error ? String(error.code) : error.name)));
    });
    req.end();
  });
}
