// Where patterns and rules of orgs run that may take long: one thread of the process, under a deadline each, and under an account of
// each org's time, so that no org keeps the thread, or those who wait for it, busy. In: jobs of pipeline/domain/patterns/jobs.ts.
import type { PatternJob, PatternPart } from '../../pipeline/domain/patterns/jobs.ts';
import type { RunnerJob } from '../../pipeline/domain/patterns/bounds.ts';
import { DeadlineThread, type JobEnd } from './deadline_thread.ts';
import { OrgTime } from './org_time.ts';

const MODULE = new URL('../../pipeline/domain/patterns/thread.ts', import.meta.url);

/** What the patterns of an org may take of the time of a process. */
const SHARE = 0.25;

/** spent: the org has had its share of time, and nothing was run. */
export type PatternJobEnd = JobEnd | 'spent';

export class PatternRunner {
  readonly #thread = new DeadlineThread<PatternJob, PatternPart>(MODULE);
  readonly #time = new OrgTime(SHARE);
  readonly #onEnd: (how: PatternJobEnd) => void;

  /** @param onEnd told of each job */
  constructor(onEnd: (how: PatternJobEnd) => void = () => undefined) {
    this.#onEnd = onEnd;
  }

  /** Resolves when a job has ended, whether or not all of it is done. */
  async run(org_id: string, job: RunnerJob): Promise<PatternJobEnd> {
    if (this.isSpent(org_id)) {
      this.#onEnd('spent');
      return 'spent';
    }
    const { how, ms } = await this.#thread.run(job);
    this.took(org_id, ms);
    this.#onEnd(how);
    return how;
  }

  /** Whether an org has had its share of time, in place and in the thread. */
  isSpent(org_id: string): boolean {
    return this.#time.isSpent(org_id, performance.now());
  }

  /** Takes down time of an org, milliseconds. */
  took(org_id: string, ms: number): void {
    this.#time.spend(org_id, ms, performance.now());
  }

  close(): Promise<void> {
    return this.#thread.close();
  }
}
