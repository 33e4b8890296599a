// The configuration of a nats-server with JetStream as the service needs it: alone, or as one node of a cluster.
// Comes in: addresses, folders, bounds. Goes out: the text of the file, which is a secret where it
// names routes. The token of clients stays in the server's environment (NATS_TOKEN). The server opens no port for monitoring: nats-server
// asks no credentials there, and nothing of the service reads it.
import path from 'node:path';
import { MESSAGE_BYTES_MAX } from '../../../schemas/streams.ts';

const MEBIBYTE = 1024 ** 2;
/**
 * The server refuses to make streams whose bounds together are above its own, though they never fill at once: on a disk of 14 GB nothing
 * would start. What a disk holds is guarded by whoever lets events in (ops/platform/disk_watch.ts).
 */
const STORE_BYTES_MAX = 2 ** 50;

/** One node of a cluster, as the others and the clients know it. */
export interface NatsClusterNode {
  /** The same in every node. */
  cluster: string;
  /** Different in every node, and kept over restarts: the replicas of streams are bound to it. */
  name: string;
  /** host:port where the other nodes connect to. */
  listen: string;
  /** What the nodes show each other: who can reach the port of a cluster could otherwise join it. Letters and digits. */
  secret: string;
  /** host:port of the other nodes, as this one reaches them. */
  routes: readonly string[];
  /** host:port under which the others are told to reach this one; unset: listen. */
  advertise?: string;
  /** host:port under which clients are told to reach this one; unset: where it listens. */
  clientAdvertise?: string;
}

export interface NatsConfig {
  dataDir: string;
  port: number;
  /** 'always', or a duration such as 1s. */
  sync: string;
  logFile: string;
  /** Most bytes of streams on disk; unset: as many as their own bounds let them have. */
  storeMaxBytes?: number;
  /** Unset: a server alone. */
  cluster?: NatsClusterNode;
}

const quote = (text: string): string => JSON.stringify(text);

/** Text of the file. */
export function natsConfigText({ dataDir, port, sync, logFile, storeMaxBytes, cluster }: NatsConfig): string {
  return `server_name: ${quote(cluster?.name ?? 'millrace')}
listen: "127.0.0.1:${port}"
ports_file_dir: ${quote(dataDir)}
log_file: ${quote(path.resolve(logFile))}
logfile_size_limit: ${20 * MEBIBYTE}
logfile_max_num: 2
max_payload: ${MESSAGE_BYTES_MAX}
max_pending: ${128 * MEBIBYTE}
write_deadline: "10s"
authorization { token: $NATS_TOKEN }
jetstream {
  store_dir: ${quote(path.join(dataDir, 'js'))}
  max_memory_store: ${64 * MEBIBYTE}
  max_file_store: ${storeMaxBytes ?? STORE_BYTES_MAX}
  sync_interval: ${sync}
}
${cluster === undefined ? '' : clusterText(cluster)}`;
}

function clusterText({ cluster, listen, secret, routes, advertise, clientAdvertise }: NatsClusterNode): string {
  const urls = routes.map((address) => quote(`nats://route:${secret}@${address}`));
  return `${clientAdvertise === undefined ? '' : `client_advertise: ${quote(clientAdvertise)}\n`}cluster {
  name: ${quote(cluster)}
  listen: ${quote(listen)}
${advertise === undefined ? '' : `  advertise: ${quote(advertise)}\n`}  authorization { user: "route", password: ${quote(secret)} }
  routes: [${urls.join(', ')}]
}
`;
}
