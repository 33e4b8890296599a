// Thins out the tasks for live LLM judges: within a cooldown, a busy agent enqueues a task for a
// few of its traces instead of all. It is best effort, from the memory of one worker, and admits
// too much rather than too little; live_cooldown.ts keeps the cooldown exactly when the task is
// carried out. At most MARKS_MAX marks are held.
import type { JudgeRecord } from '../../schemas/records/judge.ts';

const MARKS_MAX = 50_000;
/**
 * Part of a cooldown in which one trace is admitted: another worker's mark may be older than this
 * one's.
 */
const FRACTION = 0.1;
const SECOND_MS = 1000;

interface Mark {
  /**
   * Time of the last admission that, as far as this worker knows, led to a judgement; milliseconds.
   */
  begun: number;
  /** Time of the last admission, milliseconds. */
  offered: number;
}

export class LiveTaskThrottle {
  /** Marks by judge and agent, the least recently admitted first. */
  readonly #marks = new Map<string, Mark>();

  /**
   * Returns true, and marks the time, when a trace of the agent becomes a task for the judge now.
   */
  admits({ org_id, judge_id, cooldown_seconds }: JudgeRecord, agent_id: string, now: number): boolean {
    if (cooldown_seconds === 0) return true;
    const key = `${org_id} ${judge_id} ${agent_id}`;
    const cooldownMs = cooldown_seconds * SECOND_MS;
    const last = this.#marks.get(key);
    const over = last === undefined || now - last.begun >= cooldownMs;
    if (!over && now - last.offered < cooldownMs * FRACTION) return false;
    this.#marks.delete(key);
    this.#marks.set(key, { begun: over ? now : last.begun, offered: now });
    for (const oldest of this.#marks.keys()) {
      if (this.#marks.size <= MARKS_MAX) break;
      this.#marks.delete(oldest);
    }
    return true;
  }
}
