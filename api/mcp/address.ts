// The addresses of the MCP server and of its metadata, as its clients see them.
import type { IncomingMessage } from 'node:http';
import type { TLSSocket } from 'node:tls';

export const MCP_PATH = '/mcp';
export const METADATA_PATH = '/.well-known/oauth-protected-resource/mcp';

/**
 * Returns the origin of the service. A configured one counts, because a proxy may end TLS; else it is
 * the one at which the request arrived.
 */
export function originOf(req: IncomingMessage, publicUrl: string | undefined): string {
  if (publicUrl !== undefined) return publicUrl;
  const scheme = (req.socket as Partial<TLSSocket>).encrypted === true ? 'https' : 'http';
  return `${scheme}://${req.headers.host ?? 'localhost'}`;
}
