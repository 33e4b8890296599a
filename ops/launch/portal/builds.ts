// Builds the portal in a child process at the lowest priority but one's own, beside the start of everything else. Takes
// nothing; returns the folder in which the build will be, at once. Guarantees: one build runs at a time for a folder; it
// ends within BUILD_MS_MAX; where it fails, `<folder>.failed` holds the reason and one line is reported. The service does
// not wait for it.
import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { describeExit, exitOf } from '../process/child.ts';
import { lowerPriority } from '../process/priority.ts';
import { portalBuildFolder } from './build.ts';

const ENTRY = path.join(import.meta.dirname, 'build_main.ts');
const NICE = 10;
/** A build takes a few seconds; this is for a machine that is busy with other things. */
const BUILD_MS_MAX = 120_000;
const FAILED = '.failed';

export class PortalBuilds {
  readonly #complain: (line: string) => void;
  readonly #builds: string | undefined;
  #building: { folder: string; child: ChildProcess } | null = null;

  /**
   * @param complain prints one line about a build that failed
   * @param builds folder of the builds; default: that of `npm start`
   */
  constructor(complain: (line: string) => void, builds?: string) {
    this.#complain = complain;
    this.#builds = builds;
  }

  /**
   * Returns the folder of the present sources' build, and starts the build unless it exists or is under way. Undefined
   * when the sources cannot be read, which is reported.
   */
  begin(): string | undefined {
    let folder: string;
    try {
      folder = portalBuildFolder(this.#builds);
    } catch (error) {
      this.#complain(
        `No portal: its sources cannot be read (${error instanceof Error ? error.message : String(error)}).`,
      );
      return undefined;
    }
    if (existsSync(folder) || this.#building?.folder === folder) return folder;
    this.stop();
    rmSync(folder + FAILED, { force: true });
    const child = spawn(process.execPath, [ENTRY, ...(this.#builds === undefined ? [] : [this.#builds])], {
      // A session of its own, so that the priority counts and Ctrl-C in the terminal reaches the supervisor alone.
      detached: true,
      stdio: 'ignore',
    });
    lowerPriority(child.pid, NICE);
    this.#building = { folder, child };
    void this.#follow(folder, child);
    return folder;
  }

  /** Ends the build that is under way. */
  stop(): void {
    const building = this.#building;
    this.#building = null;
    building?.child.kill('SIGKILL');
  }

  async #follow(folder: string, child: ChildProcess): Promise<void> {
    const timer = setTimeout(() => child.kill('SIGKILL'), BUILD_MS_MAX);
    const exit = await exitOf(child);
    clearTimeout(timer);
    // A build that was stopped is no failure.
    if (this.#building?.child !== child) return;
    this.#building = null;
    if (exit.code === 0) return;
    if (!existsSync(folder + FAILED))
      writeFileSync(folder + FAILED, `The build ended with ${describeExit(exit)}; npm run portal:build shows more.`);
    this.#complain('The portal could not be built; its address shows the reason. Everything else runs.');
  }
}
