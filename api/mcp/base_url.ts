// The address of the service, as its clients see it.
import type { IncomingMessage } from 'node:http';
import type { TLSSocket } from 'node:tls';

/** Returns the address at which a request arrived. */
export function baseUrlOf(req: IncomingMessage): string {
  const scheme = (req.socket as Partial<TLSSocket>).encrypted === true ? 'https' : 'http';
  return `${scheme}://${req.headers.host ?? 'localhost'}`;
}
