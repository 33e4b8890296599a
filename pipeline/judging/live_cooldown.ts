// Keeps the cooldown of live LLM judges: within it, at most one of an agent's traces is judged by a
// judge. It takes tasks in any order in any worker, and decides whether each is admitted; times are
// those at which the traces completed. Guarantees: exact, as each admission is a CAS write. A
// repeated task that was admitted is admitted again, unless ADMITTED_MAX others were since. Of two
// traces too close to each other, the one whose task arrives first is judged; no trace is judged
// that completed before one that was.
import { hash } from 'node:crypto';
import { z } from 'zod';
import { isLostWrite, waitAfterLostWrite } from '../../ops/platform/nats/conflict.ts';
import type { Log } from '../../ops/platform/nats/open_log.ts';
import type { JudgingTask } from '../../schemas/codec.ts';
import { hex16 } from '../domain/traces/ids.ts';
import { judgeKey } from '../../schemas/records/judge.ts';

const TRIES_MAX = 50;
/**
 * Maximum number of marks remembered in memory, so that a flood of one agent's traces needs no
 * reads.
 */
const KNOWN_MAX = 10_000;

/**
 * Maximum number of marks that a trim keeps of an organization, newest first. A trim is due when
 * the revision of a write is a multiple of TRIM_EVERY, a prime, so that no rhythm of writes avoids
 * it.
 */
const MARKS_ORG_MAX = 20_000;
const TRIM_EVERY = 997;

/**
 * Maximum number of remembered tasks of one judge and agent: they may wait for an upstream that is
 * unavailable.
 */
const ADMITTED_MAX = 200;

/**
 * `at` is the completion time of the trace that was admitted last; `admitted` holds the admitted
 * tasks by idOf, newest last.
 */
const markShape = z.object({ at: z.int(), admitted: z.array(z.string()) });
type Mark = z.infer<typeof markShape>;

export class Cooldown {
  readonly #log: Log;
  /** Marks as last read from the bucket; a mark only ever moves forward. */
  readonly #known = new Map<string, Mark>();

  constructor(log: Log) {
    this.#log = log;
  }

  /**
   * Returns true when the task may be carried out.
   * @throws Error when NATS does not answer
   */
  async admits(task: JudgingTask, cooldown_seconds: number): Promise<boolean> {
    if (cooldown_seconds === 0) return true;
    const key = markKey(task);
    const cooldownMs = cooldown_seconds * 1000;
    const id = idOf(task);
    const decide = (mark: Mark | null | undefined): boolean | null => {
      if (mark?.admitted.includes(id) === true) return true;
      return mark != null && task.created_at < mark.at + cooldownMs ? false : null;
    };
    const decided = decide(this.#known.get(key));
    if (decided !== null) return decided;
    const kv = await this.#log.bucket('judging_marks');
    for (let tries = 1; ; tries++) {
      const entry = await kv.get(key);
      const mark = entry?.operation === 'PUT' ? markShape.parse(entry.json()) : null;
      if (mark !== null) this.#remember(key, mark);
      const now = decide(mark);
      if (now !== null) return now;
      const next: Mark = { at: task.created_at, admitted: [...(mark?.admitted ?? []), id].slice(-ADMITTED_MAX) };
      try {
        const revision = await kv.put(key, JSON.stringify(next), { previousSeq: entry?.revision ?? 0 });
        this.#remember(key, next);
        if (revision % TRIM_EVERY === 0) await this.#trim(task.org_id);
        return true;
      } catch (error) {
        if (!isLostWrite(error) || tries >= TRIES_MAX) throw error;
        await waitAfterLostWrite(tries);
      }
    }
  }

  /**
   * Deletes an organization's oldest marks. Senders of telemetry choose the names of agents, so an
   * organization could create any number of marks.
   */
  async #trim(org_id: string): Promise<void> {
    const filter = `$KV.judging_marks.${judgeKey(org_id, '').slice(0, -1)}.>`;
    // If it fails, the marks stay until the next trim.
    await this.#log.jsm.streams.purge('KV_judging_marks', { filter, keep: MARKS_ORG_MAX }).catch(() => undefined);
  }

  #remember(key: string, mark: Mark): void {
    this.#known.delete(key);
    this.#known.set(key, mark);
    const [oldest] = this.#known.keys();
    if (this.#known.size > KNOWN_MAX && oldest !== undefined) this.#known.delete(oldest);
  }
}

const idOf = ({ task_id }: JudgingTask): string => hex16(task_id);

/**
 * Returns the key of a mark. The agent's name is hashed, as senders may use characters that keys do
 * not allow.
 */
function markKey({ org_id, judge_id, agent_id }: JudgingTask): string {
  return `${judgeKey(org_id, judge_id)}.${hash('sha256', agent_id, 'hex').slice(0, 32)}`;
}
