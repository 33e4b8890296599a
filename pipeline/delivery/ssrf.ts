// Where deliveries may connect to. A name is resolved once a connection, every answer is checked, and the socket gets exactly
// those answers: what the name says a moment later cannot matter. Outside development everything but the public Internet
// is refused. In: host names of receivers. Out: addresses, or Refused. Resolving uses no thread that others wait for.
import { Resolver } from 'node:dns/promises';
import { isIP, type LookupFunction } from 'node:net';
import { whyNotPublic } from '../domain/webhooks/public_addresses.ts';
import { isLocalName } from '../domain/webhooks/url.ts';

/** A query is given up after this long, and tried so often; with both families at once a name takes 4 s at most. */
const DNS_TIMEOUT_MS = 2000;
const DNS_TRIES = 2;
/** Of a name with more addresses only so many are tried; all of them are checked. */
const ADDRESSES_MAX = 8;

/** The receiver's address may not be connected to. The message names no address: what a name resolves to here is not the tenant's to know. */
export class Refused extends Error {
  constructor() {
    super("refused: the receiver's address is not on the public Internet");
  }
}

export interface Address {
  address: string;
  family: 4 | 6;
}

/** All addresses of a name. @throws Error when it has none, or no answer came */
export type Resolve = (host: string) => Promise<Address[]>;

/** Asks the name servers of this machine. Rejects only when neither family has an answer. */
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
  /** Refuses what is not public. */
  publicOnly: boolean;
  resolve: Resolve;
}

/**
 * The addresses that a connection to this host may use.
 * @param host a name, or an address without brackets
 * @throws Refused when any of them is not public; Error when there is none
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

/** The same as the `lookup` of a socket. Sockets do not ask it about hosts that are addresses: check those by `allowedAddresses`. */
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
