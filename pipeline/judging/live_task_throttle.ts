// Which live traces LLM judges are asked about at all: best effort, from memory, so that a busy agent does not send a task for each of
// its traces. Whoever runs the judge keeps the cooldown to the letter.
import type { JudgeRecord } from '../../schemas/records/judge.ts';

const MARKS_MAX = 50_000;
/** Within a cooldown a trace is offered once in this part of it: another worker's mark may be older than ours. */
const FRACTION = 0.1;
const SECOND_MS = 1000;

interface Mark {
  /** When a trace was offered that, as far as this worker knows, is judged; milliseconds. */
  begun: number;
  /** When one was offered last. */
  offered: number;
}

export class LiveTaskThrottle {
  /** By judge and agent; the one that was offered longest ago first. */
  readonly #marks = new Map<string, Mark>();

  /** Whether a trace of an agent is offered to a judge now; if so, it is taken down. */
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
