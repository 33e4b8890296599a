// package-lock.json: what is installed is what was locked, byte for byte, from the public registry
// only.
import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';

interface Locked {
  integrity?: string;
  resolved?: string;
  link?: boolean;
  optional?: boolean;
  os?: string[];
  cpu?: string[];
}

const text = readFileSync(new URL('../../../package-lock.json', import.meta.url), 'utf8');
const { packages } = JSON.parse(text) as { packages: Record<string, Locked> };
/** The package of the SDK, which is part of this repository. */
const OWN = 'node_modules/@millrace/sdk';
const installed = Object.entries(packages).filter(([place]) => place.startsWith('node_modules/') && place !== OWN);

/**
 * Builds of the database engine for other platforms. The registry that this file was locked from
 * does not have them, so their hashes are unknown, and npm installs them unverified on those
 * platforms only. `npm install --package-lock-only` with a registry that has them adds the hashes;
 * remove them from this list then.
 */
const WITHOUT_HASH = new Set([
  ...['darwin-arm64', 'darwin-x64', 'linux-arm64-gnu'].map((platform) => `node_modules/@chdb/lib-${platform}`),
]);

it('the lock file has a SHA-512 hash for every package, except the builds for other platforms listed here', () => {
  expect(installed.length).toBeGreaterThan(100);
  const without = installed.filter(([, { integrity }]) => !/^sha512-[A-Za-z0-9+/]{86}==$/.test(integrity ?? ''));
  expect(without.map(([place]) => place).toSorted()).toEqual([...WITHOUT_HASH].toSorted());
  for (const [place, { optional, os, cpu }] of without)
    expect([place, optional, os?.[0] === 'linux' && cpu?.[0] === 'x64']).toEqual([place, true, false]);
});

it('the lock file names no source but the public registry', () => {
  const elsewhere = installed.filter(
    ([, { resolved }]) => resolved !== undefined && !resolved.startsWith('https://registry.npmjs.org/'),
  );
  expect(elsewhere).toEqual([]);
  expect(installed.filter(([, { link }]) => link === true)).toEqual([]);
});
