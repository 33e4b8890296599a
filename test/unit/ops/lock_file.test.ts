// package-lock.json: what is installed is what was locked, byte for byte, from the public registry and from nowhere else.
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
const installed = Object.entries(packages).filter(([place]) => place.startsWith('node_modules/'));

/**
 * Builds for other platforms whose hashes no registry that this project is locked from has told. npm takes them unverified, on those
 * platforms only. `npm install --package-lock-only` beside a registry that has them fills them in; take them off this list then.
 */
const WITHOUT_HASH = new Set([
  ...['darwin-arm64', 'darwin-x64', 'linux-arm64-gnu'].map((platform) => `node_modules/@chdb/lib-${platform}`),
  ...[
    'android-arm-eabi',
    'android-arm64',
    'darwin-arm64',
    'darwin-x64',
    'freebsd-x64',
    'linux-arm-gnueabihf',
    'linux-arm-musleabihf',
    'linux-ppc64-gnu',
    'linux-riscv64-gnu',
    'linux-riscv64-musl',
    'linux-s390x-gnu',
    'openharmony-arm64',
    'win32-arm64-msvc',
    'win32-ia32-msvc',
    'win32-x64-msvc',
  ].map((platform) => `node_modules/@oxc-parser/binding-${platform}`),
]);

it('locks every package by a SHA-512 hash, but for the builds for other platforms that are listed here', () => {
  expect(installed.length).toBeGreaterThan(100);
  const without = installed.filter(([, { integrity }]) => !/^sha512-[A-Za-z0-9+/]{86}==$/.test(integrity ?? ''));
  expect(without.map(([place]) => place).toSorted()).toEqual([...WITHOUT_HASH].toSorted());
  for (const [place, { optional, os, cpu }] of without)
    expect([place, optional, os?.[0] === 'linux' && cpu?.[0] === 'x64']).toEqual([place, true, false]);
});

it('names no place to install from but the public registry', () => {
  const elsewhere = installed.filter(([, { resolved }]) => resolved !== undefined && !resolved.startsWith('https://registry.npmjs.org/'));
  expect(elsewhere).toEqual([]);
  expect(installed.filter(([, { link }]) => link === true)).toEqual([]);
});
