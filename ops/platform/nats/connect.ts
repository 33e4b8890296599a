// The one way to connect to NATS: never gives up once connected, notices a hung server within seconds, says clearly when there is none.
import { setTimeout as sleep } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import type { NatsConnection } from '@nats-io/transport-node';
import { connect } from '@nats-io/transport-node';

const RECONNECT_MS = 250;
/** Two pings without an answer make a connection stale: a hung server is noticed in 3 s. */
const PING_MS = 1000;
/** A server of a cluster that knows no leader in so many looks in a row is cut off from the others, and left for another one. */
const LOOKS_WITHOUT_LEADER_MAX = 3;
const LOOK_MS = 2000;
const LOOK_MS_MAX = 1500;

export interface ConnectOptions {
  /** nats://token@host:port, comma-separated for a cluster. Userinfo: a token, or user:password; that of the first holds for all. */
  url: string;
  /** Name of the connection, as nats-server shows it. */
  name: string;
  /** How long to wait for a server that is not there yet. */
  waitMs: number;
}

/**
 * Connects, waiting up to waitMs for the first server.
 * @throws Error with one line naming the address (never its secret) and the cause.
 */
export async function connectNats({ url, name, waitMs }: ConnectOptions): Promise<NatsConnection> {
  const servers = url.split(',').map((part) => parseServer(part.trim()));
  const first = servers[0];
  if (first === undefined) throw new Error('NATS: no address');
  const otherLogin = servers.find(
    ({ login }) => Object.keys(login).length > 0 && !isDeepStrictEqual(login, first.login),
  );
  if (otherLogin !== undefined)
    throw new Error(`NATS at ${otherLogin.address}: every server of a cluster takes the login of the first`);
  const addresses = servers.map(({ address }) => address).join(', ');
  const deadline = performance.now() + waitMs;
  for (;;) {
    try {
      const nc = await connect({
        ...first.login,
        servers: servers.map(({ address }) => address),
        ...(servers.some(({ tls }) => tls) ? { tls: {} } : {}),
        name,
        maxReconnectAttempts: -1,
        reconnectTimeWait: RECONNECT_MS,
        reconnectJitter: RECONNECT_MS / 5,
        pingInterval: PING_MS,
        maxPingOut: 2,
        timeout: Math.max(500, Math.min(2000, deadline - performance.now())),
        waitOnFirstConnect: false,
        reconnect: true,
        ignoreAuthErrorAbort: true,
      });
      if (servers.length > 1) void leaveWhenCutOff(nc);
      return nc;
    } catch (error) {
      const refused = error instanceof Error && /authorization|authentication/i.test(error.message);
      if (refused || performance.now() + RECONNECT_MS >= deadline) {
        throw new Error(`NATS at ${addresses}: ${causeOf(error)}`, { cause: error });
      }
      await new Promise((resolve) => setTimeout(resolve, RECONNECT_MS));
    }
  }
}

/** The connection to a server stays up when that server loses the others; nothing that is stored could be written or read through it any more. */
async function leaveWhenCutOff(nc: NatsConnection): Promise<void> {
  for (let without = 0; !nc.isClosed();) {
    await sleep(LOOK_MS, undefined, { ref: false });
    without = nc.isClosed() || (await knowsLeader(nc)) ? 0 : without + 1;
    if (without < LOOKS_WITHOUT_LEADER_MAX) continue;
    without = 0;
    await nc.reconnect().catch(() => undefined);
  }
}

async function knowsLeader(nc: NatsConnection): Promise<boolean> {
  try {
    const answer = await nc.request('$JS.API.INFO', undefined, { timeout: LOOK_MS_MAX });
    return !('error' in answer.json<object>());
  } catch {
    return false;
  }
}

interface Server {
  address: string;
  tls: boolean;
  login: { token?: string; user?: string; pass?: string };
}

function parseServer(part: string): Server {
  const url = new URL(part.includes('://') ? part : `nats://${part}`);
  const user = decodeURIComponent(url.username);
  const pass = decodeURIComponent(url.password);
  const login = user === '' ? {} : pass === '' ? { token: user } : { user, pass };
  return { address: `${url.hostname}:${url.port === '' ? '4222' : url.port}`, tls: url.protocol === 'tls:', login };
}

function causeOf(error: unknown): string {
  const causes: string[] = [];
  for (let at = error; at instanceof Error && causes.length < 4; at = at.cause) causes.push(at.message);
  return [...new Set(causes)].join(': ').replaceAll('\n', ' ') || String(error);
}

/** Whether the connection is up now. Publishes made while it is down are thrown away by the client without a word. */
export function trackConnected(nc: NatsConnection): { readonly connected: boolean } {
  const state = { connected: !nc.isClosed() };
  void (async () => {
    for await (const status of nc.status()) {
      if (status.type === 'disconnect' || status.type === 'staleConnection' || status.type === 'close')
        state.connected = false;
      if (status.type === 'reconnect') state.connected = true;
    }
    state.connected = false;
  })();
  return state;
}
