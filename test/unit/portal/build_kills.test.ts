// A build of the portal that is killed: nothing half is served, and the next start builds all of it.
import { existsSync, readdirSync, readFileSync, utimesSync, watch } from 'node:fs';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { buildPortal, portalBuildFolder } from '../../../ops/launch/portal/build.ts';
import { PortalBuilds } from '../../../ops/launch/portal/builds.ts';
import { removeDir, tempDir } from '../../support/temp.ts';
import { eventually } from '../../support/wait.ts';

/** Bound on a build on a machine whose cores are all in use; an idle one needs under 3 s. */
const BUILD_MS_MAX = 120_000;
const DAY_S = 86_400;
let builds = '';

beforeEach(() => {
  builds = tempDir('portal-builds');
});
afterEach(() => {
  removeDir(builds);
});

/** Kills the process of the next build as soon as it writes files, and returns the name of what it leaves. */
function killNextBuild(): Promise<string> {
  return new Promise((resolve) => {
    const watcher = watch(builds, (_, name) => {
      const pid = Number(/\.(\d+)\.making$/.exec(name ?? '')?.[1] ?? Number.NaN);
      if (name === null || Number.isNaN(pid)) return;
      watcher.close();
      process.kill(pid, 'SIGKILL');
      resolve(name);
    });
  });
}

/** Expects that the folder holds the manifest and every file that it names, with both compressed forms of texts. */
function expectWhole(folder: string): void {
  const manifest = JSON.parse(readFileSync(path.join(folder, 'manifest.json'), 'utf8')) as Record<
    string,
    { file: string }
  >;
  expect(Object.keys(manifest).length).toBeGreaterThan(10);
  for (const { file } of Object.values(manifest)) {
    expect([file, existsSync(path.join(folder, file))]).toEqual([file, true]);
    if (!/\.(js|css)$/.test(file)) continue;
    for (const end of ['.br', '.gz']) expect([file, existsSync(path.join(folder, file + end))]).toEqual([file, true]);
  }
}

describe('a build of the portal that is killed with SIGKILL', () => {
  it(
    'leaves no build and the reason, and the next start builds all of it and removes what is left',
    async () => {
      const lines: string[] = [];
      const killed = killNextBuild();
      const folder = new PortalBuilds((line) => lines.push(line), builds).begin();
      expect(folder).toBe(portalBuildFolder(builds));
      const name = await killed;
      await eventually(() => lines.length > 0, { withinMs: BUILD_MS_MAX, what: 'a report about the build' });
      expect(lines[0]).toContain('The portal could not be built');
      expect(existsSync(folder ?? '')).toBe(false);
      expect(readFileSync(`${folder ?? ''}.failed`, 'utf8')).toContain('SIGKILL');

      // Only what is old enough to belong to no running build is removed.
      const old = Date.now() / 1000 - DAY_S;
      utimesSync(path.join(builds, name), old, old);
      const second = new PortalBuilds((line) => lines.push(line), builds);
      expect(second.begin()).toBe(folder);
      expect(existsSync(`${folder ?? ''}.failed`)).toBe(false);
      await eventually(() => existsSync(folder ?? '') || lines.length > 1, {
        withinMs: BUILD_MS_MAX,
        what: 'the next build',
      });
      expectWhole(folder ?? '');
      await eventually(() => !existsSync(path.join(builds, name)), { what: 'the removal of the killed build' });
      expect(readdirSync(builds)).toEqual([path.basename(folder ?? '')]);
      expect(lines).toHaveLength(1);
    },
    2 * BUILD_MS_MAX,
  );

  it(
    'is not mistaken for a whole one by a build that finds its rest',
    async () => {
      const killed = killNextBuild();
      new PortalBuilds(() => undefined, builds).begin();
      expect(existsSync(path.join(builds, await killed))).toBe(true);
      expectWhole(await buildPortal(builds));
    },
    2 * BUILD_MS_MAX,
  );
});
