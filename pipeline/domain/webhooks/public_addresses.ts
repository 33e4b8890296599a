// Decides which IP addresses belong to the public Internet. Pure. Everything not known to be global
// unicast is rejected, and so is every IPv6 address that embeds an IPv4 one: somebody else's
// gateway decides where it leads.
import { isIPv4, isIPv6 } from 'node:net';

/**
 * [first, bits]: blocks of IPv4 that are not global unicast (IANA's special-purpose registry), and
 * one that only appears to be.
 */
const REFUSED_V4: readonly (readonly [string, number, string])[] = [
  ['0.0.0.0', 8, 'this network'],
  ['10.0.0.0', 8, 'private'],
  ['100.64.0.0', 10, 'carrier-grade NAT'],
  ['127.0.0.0', 8, 'loopback'],
  ['168.63.129.16', 32, 'cloud metadata'],
  ['169.254.0.0', 16, 'link-local'],
  ['172.16.0.0', 12, 'private'],
  ['192.0.0.0', 24, 'reserved'],
  ['192.0.2.0', 24, 'documentation'],
  ['192.31.196.0', 24, 'reserved'],
  ['192.52.193.0', 24, 'reserved'],
  ['192.88.99.0', 24, '6to4 relay'],
  ['192.168.0.0', 16, 'private'],
  ['192.175.48.0', 24, 'reserved'],
  ['198.18.0.0', 15, 'benchmarking'],
  ['198.51.100.0', 24, 'documentation'],
  ['203.0.113.0', 24, 'documentation'],
  ['224.0.0.0', 4, 'multicast'],
  ['240.0.0.0', 4, 'reserved'],
];

/** Blocks within 2000::/3 that are not global unicast. */
const REFUSED_V6: readonly (readonly [string, number, string])[] = [
  ['2001::', 23, 'IETF protocol assignments, Teredo among them'],
  ['2001:db8::', 32, 'documentation'],
  ['2002::', 16, '6to4'],
  ['2620:4f:8000::', 48, 'reserved'],
  ['3fff::', 20, 'documentation'],
];
const GLOBAL_V6 = ['2000::', 3] as const;

function v4Number(text: string): bigint {
  return text.split('.').reduce((number, part) => (number << 8n) | BigInt(part), 0n);
}

/**
 * Returns a valid address without a zone as a number; a tail in dotted form counts as its two
 * groups.
 */
function v6Number(text: string): bigint {
  const tail = /^(.*:)(\d+\.\d+\.\d+\.\d+)$/.exec(text);
  const whole =
    tail === null
      ? text
      : `${tail[1] ?? ''}${(v4Number(tail[2] ?? '') >> 16n).toString(16)}:${(v4Number(tail[2] ?? '') & 0xffffn).toString(16)}`;
  const [head = '', rest] = whole.split('::');
  const groups = (part: string) => (part === '' ? [] : part.split(':'));
  const [before, after] = [groups(head), groups(rest ?? '')];
  const filled =
    rest === undefined
      ? before
      : [...before, ...Array.from({ length: 8 - before.length - after.length }, () => '0'), ...after];
  return filled.reduce((number, group) => (number << 16n) | BigInt(`0x${group}`), 0n);
}

const within = (number: bigint, first: bigint, bits: number, width: number): boolean =>
  number >> BigInt(width - bits) === first >> BigInt(width - bits);

/**
 * Returns why an address is not on the public Internet; null for one that is.
 * @param address dotted IPv4, or IPv6 without brackets, as a resolver or a URL gives it; anything
 * else is rejected
 */
export function whyNotPublic(address: string): string | null {
  if (isIPv4(address)) {
    const number = v4Number(address);
    return REFUSED_V4.find(([first, bits]) => within(number, v4Number(first), bits, 32))?.[2] ?? null;
  }
  // A zone names an interface of this machine: only link-local addresses have one.
  if (address.includes('%')) return 'link-local';
  if (!isIPv6(address)) return 'no address';
  const number = v6Number(address);
  if (!within(number, v6Number(GLOBAL_V6[0]), GLOBAL_V6[1], 128)) return 'not global unicast';
  return REFUSED_V6.find(([first, bits]) => within(number, v6Number(first), bits, 128))?.[2] ?? null;
}
