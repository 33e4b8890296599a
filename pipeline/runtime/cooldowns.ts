// Which live traces LLM judges are asked about at all: best effort, from memory, so that a busy agent does not send a task for each of
// its traces. Whoever runs the judge keeps the cooldown to the letter.
import type { JudgeRecord } from '../../schemas/records/judge.ts';

const MARKS_MAX = 50_000;
/** A trace is offered from this part of the cooldown on: the judge's own mark may be older than ours. */
const FRACTION = 0.5;
const SECOND_MS = 1000;

export class Cooldowns {
  /** When each judge was last offered a trace of an agent, milliseconds; oldest first. */
  readonly #marks = new Map<string, number>();

  /** Whether a trace of an agent is offered to a judge now; if so, it is taken down. */
  pass({ org_id, judge_id, cooldown_seconds }: JudgeRecord, agent_id: string, now: number): boolean {
    if (cooldown_seconds === 0) return true;
    const key = `${org_id} ${judge_id} ${agent_id}`;
    const last = this.#marks.get(key);
    if (last !== undefined && now - last < cooldown_seconds * SECOND_MS * FRACTION) return false;
    this.#marks.delete(key);
    this.#marks.set(key, now);
    for (const oldest of this.#marks.keys()) {
      if (this.#marks.size <= MARKS_MAX) break;
      this.#marks.delete(oldest);
    }
    return true;
  }
}
