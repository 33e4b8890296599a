// Connects a process to NATS. The connection reconnects for ever once it was up, notices a hung
// server within seconds, and reports clearly that no server was found.
import { setTimeout as sleep } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import type { NatsConnection } from '@nats-io/transport-node';
import { connect } from '@nats-io/transport-node';

const RECONNECT_MS = 250;
/**
 * Interval of pings. Two unanswered pings make a connection stale, so a hung server is noticed
 * within 3 seconds.
 */
const PING_MS = 1000;
/**
 * A server that knows no cluster leader in this many looks in a row is cut off from the cluster;
 * the client leaves it for another server.
 */
const LOOKS_WITHOUT_LEADER_MAX = 3;
const LOOK_MS = 2000;
const LOOK_MS_MAX = 1500;

export interface ConnectOptions {
  /**
   * Addresses as nats://token@host:port, comma-separated for a cluster. The user part is a token or
   * user:password; the one of the first server applies to all.
   */
  url: string;
  /** Name of the connection, which nats-server shows. */
  name: string;
  /** Maximum wait for the first server, in milliseconds. */
  waitMs: number;
}

/**
 * Connects to NATS, waiting up to waitMs for the first server.
 * @throws Error with one line that names the address, never its secret, and the cause
 */
export async function connectNats({ url, name, waitMs }: ConnectOptions): Promise<NatsConnection> {
  const servers = url.split(',').map((part) => parseServer(part.trim()));
  const first = servers[0];
  if (first === undefined) throw new Error('NATS: no address');
  const otherLogin = servers.find(
    ({ login }) => Object.keys(login).length > 0 && !isDeepStrictEqual(login, first.login),
  );
  if (otherLogin !== undefined)
    throw new Error(`NATS at ${otherLogin.address}: every server of a cluster must accept the login of the first`);
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

/**
 * Moves the connection to another server when its own is cut off from the cluster. Such a server
 * keeps its connections, but nothing that is stored can be written or read through it.
 */
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

/**
 * Returns an object that says whether the connection is up now. The client silently discards what
 * is published while it is down.
 */
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
