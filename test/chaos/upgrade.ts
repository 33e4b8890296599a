// A rolling upgrade under load: workers first, then API processes (ops/docs/operate/upgrade.md), each stopped with
// SIGTERM and replaced before the next one. Both versions run side by side for a while. If the schemas allow it, one
// worker and one API process go back to the older version and forth again.
import { pause } from './client.ts';
import type { Fault, Ground } from './faults.ts';
import type { Kind, ProcessName } from './stack.ts';
import { mayGoBack, type Version } from './versions.ts';

/** How long both versions run side by side at each of the pauses, in milliseconds. */
const SIDE_BY_SIDE_MS = 5000;
/**
 * Time between taking a process out of service and SIGTERM, in milliseconds, for versions that do not say at
 * /healthz that they leave. Their manifests have a preStop hook for it.
 */
const PRE_STOP_MS = 1000;

/** Settings of a stack whose processes are replaced: the load balancer notices well within this time. */
export const UPGRADE_ENV: Readonly<Record<string, string>> = { SERVICE_DRAIN_DELAY_MS: '1500' };

export const rollingUpgrade: Fault = {
  name: 'rolling-upgrade',
  what: 'each worker and API process drained and replaced by a newer version, one at a time, with both side by side, and back',
  needs: { apis: 2, olderVersion: true },
  holdMs: SIDE_BY_SIDE_MS,
  noFailures: true,
  drains: true,
  run: async (ground, holdMs) => {
    const { stack, versions } = ground;
    if (versions === null) throw new Error('a rolling upgrade needs an older version');
    const { older, newer } = versions;
    const [workers, apis] = [stack.named('worker'), stack.named('api')];
    const back = mayGoBack(older, newer);
    if ([...workers, ...apis].some((name) => stack.rootOf(name) !== older.root)) {
      if (!back) throw new Error(`${older.name} cannot start after ${newer.name}, so there is one round only`);
      for (const name of [...apis, ...workers]) await replace(ground, name, older);
    }
    ground.struck(`upgrade from ${older.name} begins`);
    await replaceAll(ground, workers, newer, holdMs);
    await replaceAll(ground, apis, newer, holdMs);
    if (!back) return;
    for (const names of [apis, workers]) for (const name of names.slice(0, 1)) await replace(ground, name, older);
    await pause(holdMs);
    for (const names of [workers, apis]) for (const name of names.slice(0, 1)) await replace(ground, name, newer);
  },
};

/** Replaces processes one after the other, with a pause after the first. */
async function replaceAll(
  ground: Ground,
  names: readonly ProcessName[],
  version: Version,
  holdMs: number,
): Promise<void> {
  for (const [index, name] of names.entries()) {
    await replace(ground, name, version);
    if (index === 0) await pause(holdMs);
  }
}

/** Stops a process in order, and starts it in a version. Resolves once it has its share of the work. */
async function replace({ stack, traffic, versions, note }: Ground, name: ProcessName, to: Version): Promise<void> {
  const kind = name.slice(0, name.indexOf('-')) as Kind;
  const from = [versions?.older, versions?.newer].find((version) => version?.root === stack.rootOf(name));
  const api = kind === 'api' ? stack.named('api').indexOf(name) : null;
  if (api !== null && from?.saysItLeaves !== true) {
    traffic.remove(api);
    await pause(PRE_STOP_MS);
  }
  const began = performance.now();
  await stack.end(name);
  const ended = performance.now();
  stack.setRoot(name, to.root);
  await stack.boot(name);
  if (api !== null) await traffic.restore(api);
  note(
    `${name} drained in ${Math.round(ended - began)} ms, and was replaced by ${to.name} in ${Math.round(performance.now() - ended)} ms`,
  );
}
