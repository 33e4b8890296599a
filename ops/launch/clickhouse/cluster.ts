// Configuration of an embedded ClickHouse that is one shard of a cluster: its port for the other
// shards and the list of all of them. Pure: takes names and ports, returns XML.

/** Cluster that an engine belongs to. All its engines must get the same name, secret and shards. */
export interface ClusterConfig {
  name: string;
  /**
   * The shards prove with this secret that a query comes from a shard. A query then runs as the
   * same user on every shard, so no shard needs a password of another one.
   */
  secret: string;
  /** Port of this engine for the native protocol, on the address of its HTTP port. */
  tcpPort: number;
  /** All shards in their order, this engine included. */
  shards: readonly { host: string; tcpPort: number }[];
}

/**
 * Returns the elements of config.xml that make the engine a shard.
 * @param escape escapes text for XML
 * @throws Error if the secret is empty, because the shards would then ask for no proof
 */
export function clusterXml({ name, secret, tcpPort, shards }: ClusterConfig, escape: (text: string) => string): string {
  if (secret === '') throw new Error('the secret of a ClickHouse cluster is empty');
  const listed = shards.map(
    (shard) => `<shard><replica><host>${escape(shard.host)}</host><port>${shard.tcpPort}</port></replica></shard>`,
  );
  return `<tcp_port>${tcpPort}</tcp_port>
  <remote_servers><${name}><secret>${escape(secret)}</secret>${listed.join('')}</${name}></remote_servers>`;
}
