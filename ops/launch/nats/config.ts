// Configuration of a nats-server with JetStream, alone or as one node of a cluster. Takes
// addresses, folders and bounds; returns the text of the file, which is secret if it names routes.
// The token of clients stays in the server's environment (NATS_TOKEN). The server opens no
// monitoring port: nats-server asks for no credentials there, and the service does not read it.
import path from 'node:path';
import { MESSAGE_BYTES_MAX } from '../../../schemas/streams.ts';

const MEBIBYTE = 1024 ** 2;
/**
 * Bound of the server on all streams together. The server refuses to create streams whose bounds
 * add up to more than its own, even if they never fill at the same time, so with a 14 GB disk as
 * the bound nothing would start. Admission guards the disk instead (ops/platform/disk_watch.ts).
 */
const STORE_BYTES_MAX = 2 ** 50;

/** Node of a cluster, as other nodes and clients see it. */
export interface NatsClusterNode {
  /** Name of the cluster, the same in every node. */
  cluster: string;
  /**
   * Name of the node. It must be unique and stay the same over restarts, because replicas of
   * streams are bound to it.
   */
  name: string;
  /** host:port that other nodes connect to. */
  listen: string;
  /**
   * Password between nodes; without it, anyone who can reach the cluster port could join. Letters
   * and digits.
   */
  secret: string;
  /** host:port of the other nodes, as this node reaches them. */
  routes: readonly string[];
  /** host:port that this node advertises to other nodes; `listen` if absent. */
  advertise?: string;
  /** host:port that this node advertises to clients; its listen address if absent. */
  clientAdvertise?: string;
}

export interface NatsConfig {
  dataDir: string;
  port: number;
  /** 'always', or a duration such as 1s. */
  sync: string;
  logFile: string;
  /** Maximum bytes of streams on disk; if absent, only the streams' own bounds apply. */
  storeMaxBytes?: number;
  /** Absent for a single server. */
  cluster?: NatsClusterNode;
}

const quote = (text: string): string => JSON.stringify(text);

/** Returns the text of the file. */
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
