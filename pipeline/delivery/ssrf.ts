// Guards which addresses webhook deliveries may connect to. Outside development, only the public
// Internet is allowed. It takes the host name of a receiver and returns its addresses, or throws
// Refused. A name is resolved once for each connection, every address is checked, and the socket
// uses exactly the checked addresses: a later change of the name has no effect. The resolver uses
// no thread of the pool.
import { Resolver } from 'node:dns/promises';
import { isIP, type LookupFunction } from 'node:net';
import { whyNotPublic } from '../domain/webhooks/public_addresses.ts';
import { isLocalName } from '../domain/webhooks/url.ts';

/**
 * Timeout and number of attempts of one query: a name takes at most 4 s, as both address families
 * are queried at once.
 */
const DNS_TIMEOUT_MS = 2000;
const DNS_TRIES = 2;
/** Maximum number of addresses of a name that a connection tries; all of them are checked. */
const ADDRESSES_MAX = 8;

/**
 * The receiver's address is not allowed. The message names no address: the tenant must not learn
 * what a name resolves to here.
 */
export class Refused extends Error {
  constructor() {
    super("refused: the receiver's address is not on the public Internet");
  }
}

export interface Address {
  address: string;
  family: 4 | 6;
}

/**
 * Resolves with all addresses of a name.
 * @throws Error when it has none, or when no server answers
 */
export type Resolve = (host: string) => Promise<Address[]>;

/**
 * Returns a resolver that queries the name servers of this machine. It rejects only when neither
 * address family has an answer.
 */
export function createResolve(): Resolve {
  const resolver = new Resolver({ timeout: DNS_TIMEOUT_MS, tries: DNS_TRIES });
  return async (host) => {
    const [v4, v6] = await Promise.allSettled([resolver.resolve4(host), resolver.resolve6(host)]);
    const found: Address[] = [
      ...(v4.status === 'fulfilled' ? v4.value.map((address) => ({ address, family: 4 as const })) : []),
      ...(v6.status === 'fulfilled' ? v6.value.map((address) => ({ address, family: 6 as const })) : []),
    ];
    if (found.length === 0)
      throw new Error('the name of the receiver has no address', {
        cause: v4.status === 'rejected' ? v4.reason : undefined,
      });
    return found;
  };
}

export interface GuardOptions {
  /** True to refuse addresses that are not public. */
  publicOnly: boolean;
  resolve: Resolve;
}

/**
 * Returns the addresses that a connection to this host may use.
 * @param host a name, or an address without brackets
 * @throws Refused when any of its addresses is not public; Error when it has none
 */
export async function allowedAddresses(host: string, { publicOnly, resolve }: GuardOptions): Promise<Address[]> {
  const name = host.replace(/\.$/, '').toLowerCase();
  const literal = isIP(name);
  const found: Address[] =
    literal !== 0
      ? [{ address: name, family: literal === 4 ? 4 : 6 }]
      : isLocalName(name)
        ? [
            { address: '127.0.0.1', family: 4 },
            { address: '::1', family: 6 },
          ]
        : await resolve(name);
  if (publicOnly && found.some(({ address }) => whyNotPublic(address) !== null)) throw new Refused();
  return found.slice(0, ADDRESSES_MAX);
}

/**
 * Returns the guard as the `lookup` of a socket. Sockets do not call it for hosts that are
 * addresses: check those with `allowedAddresses`.
 */
export function guardedLookup(options: GuardOptions): LookupFunction {
  return (host, wanted, callback) => {
    allowedAddresses(host, options).then(
      (found) => {
        const family =
          wanted.family === 4 || wanted.family === 'IPv4' ? 4 : wanted.family === 6 || wanted.family === 'IPv6' ? 6 : 0;
        const fitting = family === 0 ? found : found.filter((one) => one.family === family);
        const [first] = fitting;
        if (first === undefined) callback(new Error('the receiver has no address of this family'), '', 0);
        else if (wanted.all === true) callback(null, fitting);
        else callback(null, first.address, first.family);
      },
      (error: unknown) => {
        callback(error instanceof Error ? error : new Error(String(error)), '', 0);
      },
    );
  };
}
