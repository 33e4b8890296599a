// Runs the patterns and rules of organizations that may take long: in one thread of the process,
// each under a deadline and under its organization's time account, so that no organization keeps
// the thread busy for the others. Takes the jobs of pipeline/domain/patterns/jobs.ts.
import type { PatternJob, PatternPart } from '../../pipeline/domain/patterns/jobs.ts';
import type { RunnerJob } from '../../pipeline/domain/patterns/bounds.ts';
import { DeadlineThread, type JobEnd } from './deadline_thread.ts';
import { OrgTime } from './org_time.ts';

const MODULE = new URL('../../pipeline/domain/patterns/thread.ts', import.meta.url);

/** Share of a process's time that the patterns of one organization may use. */
const SHARE = 0.25;

/** spent: the organization had used up its share of time, and nothing was run. */
export type PatternJobEnd = JobEnd | 'spent';

export class PatternRunner {
  readonly #thread = new DeadlineThread<PatternJob, PatternPart>(MODULE);
  readonly #time = new OrgTime(SHARE);
  readonly #onEnd: (how: PatternJobEnd) => void;

  /** @param onEnd called for each job with how it ended */
  constructor(onEnd: (how: PatternJobEnd) => void = () => undefined) {
    this.#onEnd = onEnd;
  }

  /** Runs a job. Resolves once it has ended, whether or not all of it is done. */
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

  /**
   * Returns true when the organization has used up its share of time, in the thread and outside it.
   */
  isSpent(org_id: string): boolean {
    return this.#time.isSpent(org_id, performance.now());
  }

  /** Charges time to an organization's account, in milliseconds. */
  took(org_id: string, ms: number): void {
    this.#time.spend(org_id, ms, performance.now());
  }

  close(): Promise<void> {
    return this.#thread.close();
  }
}
