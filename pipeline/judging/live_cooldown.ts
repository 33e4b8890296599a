// Lets at most one live judgement of an agent's traces by a judge through in its cooldown, counted from the completion of the traces.
// In: tasks, in any order, in any worker. Guarantees: exact, by a CAS write for each that is let through; a task that was let through is let
// through again when it comes again, unless ADMITTED_MAX others were since then; of two traces that complete too close to each other the one
// whose task comes first is judged, and none that completed before one that was.
import { hash } from 'node:crypto';
import { z } from 'zod';
import { isLostWrite, waitAfterLostWrite } from '../../ops/platform/nats/conflict.ts';
import type { Log } from '../../ops/platform/nats/open_log.ts';
import type { JudgingTask } from '../../schemas/codec.ts';
import { hex16 } from '../domain/traces/ids.ts';
import { judgeKey } from '../../schemas/records/judge.ts';

const TRIES_MAX = 50;
/** Marks that are remembered, so that a flood of traces of one agent is not looked up one by one. */
const KNOWN_MAX = 10_000;

/** Marks of one org that outlive a trim, the newest. The revision of a write decides when one is due: a prime, so that no rhythm misses it. */
const MARKS_ORG_MAX = 20_000;
const TRIM_EVERY = 997;

/** Tasks of one judge and agent that may wait for an upstream that is away. */
const ADMITTED_MAX = 200;

/** When the trace completed whose task was let through last, and the tasks that were, by idOf, the newest last. */
const markShape = z.object({ at: z.int(), admitted: z.array(z.string()) });
type Mark = z.infer<typeof markShape>;

export class Cooldown {
  readonly #log: Log;
  /** What stood in the bucket when it was looked at last: a mark only ever moves on. */
  readonly #known = new Map<string, Mark>();

  constructor(log: Log) {
    this.#log = log;
  }

  /** Whether the task may be carried out. @throws Error when NATS does not answer */
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

  /** Forgets an org's oldest marks: agents are named by whoever sends telemetry, so an org could make any number of them. */
  async #trim(org_id: string): Promise<void> {
    const filter = `$KV.judging_marks.${judgeKey(org_id, '').slice(0, -1)}.>`;
    // Without it the marks stay until the next trim.
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

/** Agents are named by whoever sends telemetry: their names are no keys. */
function markKey({ org_id, judge_id, agent_id }: JudgingTask): string {
  return `${judgeKey(org_id, judge_id)}.${hash('sha256', agent_id, 'hex').slice(0, 32)}`;
}
