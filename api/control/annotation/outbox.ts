// Sends the scores of answers to the queue of scores. An answer is stored together with its scores,
// so none is lost when the process dies in between: every API process sweeps the items whose scores
// are not known to be stored and sends them again, which changes nothing if they are. The sweep also
// deletes items whose queue is gone. Bounds: one sweep at a time, with a pause, and a number of
// items in each.
import type { ReportProblem } from '../../../ops/platform/report_problem.ts';
import type { UserScore } from '../../../schemas/codec.ts';
import type { ItemRecord } from '../../../schemas/records/annotation.ts';
import { scoreMessageId } from '../../../schemas/score_deletion.ts';
import type { AnnotationStore } from './store.ts';

const SWEEP_MS = 2000;
/** An item whose scores have waited this long was left by a process that died or failed. */
const LEFT_MS = 5000;
const SWEPT_MAX = 200;

export interface OutboxDeps {
  annotations: AnnotationStore;
  /** Resolves when the score is stored in the log. */
  queueScore: (score: UserScore) => Promise<void>;
  /** Monotonic milliseconds. */
  clock: () => number;
  onProblem: ReportProblem;
}

export class Outbox {
  readonly #deps: OutboxDeps;
  /** When this process first saw scores of an item waiting, by item. */
  readonly #since = new Map<string, number>();
  #timer: NodeJS.Timeout | undefined;
  #sweeping = false;

  constructor(deps: OutboxDeps) {
    this.#deps = deps;
  }

  start(): void {
    this.#timer = setInterval(() => void this.#sweep(), SWEEP_MS).unref();
  }

  close(): void {
    clearInterval(this.#timer);
  }

  /** Sends the scores that an item holds. @throws Error when they are not confirmed; the sweep repeats them */
  async send(item: ItemRecord): Promise<void> {
    const { annotations, queueScore } = this.#deps;
    if (item.outbox.length === 0) return;
    await Promise.all(item.outbox.map(queueScore));
    const sent = new Set(item.outbox.map(scoreMessageId));
    await annotations.changeItem(item, (newest) => ({
      ...newest,
      outbox: newest.outbox.filter((score) => !sent.has(scoreMessageId(score))),
    }));
  }

  async #sweep(): Promise<void> {
    if (this.#sweeping) return;
    this.#sweeping = true;
    const { annotations, onProblem } = this.#deps;
    try {
      for (const item of this.#left()) await this.send(item);
      await annotations.removeItems(annotations.orphans().slice(0, SWEPT_MAX));
    } catch (cause) {
      onProblem('scores of annotation answers could not be sent; they are sent again', cause);
    } finally {
      this.#sweeping = false;
    }
  }

  #left(): ItemRecord[] {
    const now = this.#deps.clock();
    const unsent = this.#deps.annotations.unsent();
    const keys = new Set(unsent.map(({ item_id }) => item_id));
    for (const key of this.#since.keys()) if (!keys.has(key)) this.#since.delete(key);
    const left: ItemRecord[] = [];
    for (const item of unsent) {
      const since = this.#since.get(item.item_id) ?? now;
      this.#since.set(item.item_id, since);
      if (now - since >= LEFT_MS && left.length < SWEPT_MAX) left.push(item);
    }
    return left;
  }
}
