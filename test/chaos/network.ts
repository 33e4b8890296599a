// The proxies between the parts of a stack: from each kind of process to each nats-server and to
// ClickHouse, and between the nats-servers. Addresses are fixed; a fault sets the mode of some
// proxies.
import { freePort } from '../../ops/launch/process/ports.ts';
import { Proxy, type ProxyMode } from './proxy.ts';

type Client = 'api' | 'worker';

export interface Targets {
  /** Ports of each nats-server. */
  nats: readonly { client: number; routes: number }[];
  /** Port of each shard of ClickHouse. */
  clickhouse: readonly number[];
}

/**
 * A set of connections: those of a kind of process to NATS or to a shard of ClickHouse (from 0), or all
 * routes of one nats-server (from 0).
 */
export type Link = `${Client} nats` | `${Client} clickhouse ${number}` | `routes ${number}`;

interface Placed {
  proxy: Proxy;
  port: number;
}

export class Network {
  readonly #placed = new Map<string, Placed>();
  /** An address without a listener. */
  readonly nowhere: string;

  private constructor(nowhere: string) {
    this.nowhere = nowhere;
  }

  static async open({ nats, clickhouse }: Targets): Promise<Network> {
    const network = new Network(`127.0.0.1:${await freePort()}`);
    const place = async (key: string, target: number): Promise<void> => {
      const port = await freePort();
      const proxy = new Proxy(port, target);
      await proxy.open();
      network.#placed.set(key, { proxy, port });
    };
    for (const client of ['api', 'worker']) {
      for (const [index, { client: target }] of nats.entries()) await place(`${client} nats ${index}`, target);
      for (const [index, target] of clickhouse.entries()) await place(`${client} clickhouse ${index}`, target);
    }
    for (const from of nats.keys())
      for (const [to, { routes }] of nats.entries()) if (from !== to) await place(`route ${from} ${to}`, routes);
    return network;
  }

  natsPort(client: Client, index: number): number {
    return this.#port(`${client} nats ${index}`);
  }

  clickhousePort(client: Client, index: number): number {
    return this.#port(`${client} clickhouse ${index}`);
  }

  /** Returns the port at which a nats-server reaches another one. */
  routePort(from: number, to: number): number {
    return this.#port(`route ${from} ${to}`);
  }

  set(links: readonly Link[], mode: ProxyMode): void {
    for (const link of links) for (const { proxy } of this.#of(link)) proxy.set(mode);
  }

  async close(): Promise<void> {
    await Promise.all([...this.#placed.values()].map(({ proxy }) => proxy.close()));
  }

  #of(link: Link): Placed[] {
    const node = /^routes (\d+)$/.exec(link)?.[1];
    const wanted = (key: string): boolean =>
      node === undefined ? key.startsWith(link) : key.startsWith('route ') && key.split(' ').slice(1).includes(node);
    return [...this.#placed].filter(([key]) => wanted(key)).map(([, placed]) => placed);
  }

  #port(key: string): number {
    const placed = this.#placed.get(key);
    if (placed === undefined) throw new Error(`no proxy for ${key}`);
    return placed.port;
  }
}
