// Decides how far an API process that has just started can decide hard limits: the use that other processes wrote to
// the ingest log before is in no sum of the store until it has landed. It counts what the log holds (backlog.ts), and is
// done once that is counted or has landed (startup_barrier.ts). Only organizations that had a hard limit at the start
// wait for it: a limit that is set later, of a new organization too, is decided at once.
import { setTimeout as sleep } from 'node:timers/promises';
import type { ReportProblem } from '../../../ops/platform/report_problem.ts';
import type { UsageFollower } from '../../../ops/exchange/usage_follower.ts';
import { streamState } from '../../../ops/platform/nats/log_streams.ts';
import type { Log } from '../../../ops/platform/nats/open_log.ts';
import { hasHardLimit } from '../../../pipeline/domain/budgets/budget.ts';
import type { UsageLedger } from '../../../pipeline/domain/budgets/usage_ledger.ts';
import { accountsOf } from '../../../schemas/accounts.ts';
import type { PriceBook } from '../../../pipeline/domain/pricing/pricing.ts';
import type { BudgetRecord } from '../../../schemas/records/budget.ts';
import { countBacklog } from './backlog.ts';
import { StartupBarrier } from './startup_barrier.ts';
import { usesOf } from './uses.ts';

export interface StartupKnowledgeDeps {
  log: Log;
  /** Number of partitions of the ingest log. */
  partitions: number;
  prices: PriceBook;
  budgets: { get: (account: string) => BudgetRecord | null };
  ledger: Pick<UsageLedger, 'beginBacklog' | 'countLogged'>;
  follower: Pick<UsageFollower, 'onReports' | 'readAt' | 'whenRead' | 'rereadAll'>;
  onProblem: ReportProblem;
}

export class StartupKnowledge {
  readonly #deps: StartupKnowledgeDeps;
  /** Organizations that had a hard limit at the start. */
  readonly #limited: ReadonlySet<string>;
  /** Organizations with a hard limit whose use is not known yet. */
  readonly #unknown: Set<string>;
  readonly #stopped = new AbortController();
  readonly #barrier: StartupBarrier;

  private constructor(deps: StartupKnowledgeDeps, limited: ReadonlySet<string>, newest: ReadonlyMap<number, number>) {
    this.#deps = deps;
    this.#limited = limited;
    this.#unknown = new Set(limited);
    this.#barrier = new StartupBarrier({
      newest,
      onKnown: () => {
        this.#stopped.abort();
        deps.follower.rereadAll();
      },
    });
  }

  /**
   * Starts counting what the log holds. Every subscription of this process must exist before: it hears of what enters
   * the log after this call.
   * @param limited organizations that have a hard limit
   */
  static async begin(deps: StartupKnowledgeDeps, limited: ReadonlySet<string>): Promise<StartupKnowledge> {
    await deps.log.nc.flush();
    const newest = limited.size === 0 ? new Map<number, number>() : await newestOf(deps);
    deps.ledger.beginBacklog((partition) => newest.get(partition) ?? 0);
    const knowledge = new StartupKnowledge(deps, limited, newest);
    deps.follower.onReports((reports) => {
      knowledge.#barrier.heard(reports);
    });
    if (newest.size > 0) void knowledge.#count(newest);
    return knowledge;
  }

  /** Returns true when this process knows what the organization has used. */
  isKnown(org_id: string): boolean {
    const readAt = this.#deps.follower.readAt(org_id);
    if (readAt === -Infinity) return false;
    const { knownAt } = this.#barrier;
    return !this.#limited.has(org_id) || (knownAt !== null && readAt >= knownAt);
  }

  /** Resolves when the organization's use may be known, and after `withinMs` milliseconds at the latest. */
  async whenKnown(org_id: string, withinMs: number): Promise<void> {
    const known = this.#barrier.known.then(() => this.#deps.follower.whenRead(org_id, withinMs));
    await Promise.race([known, sleep(withinMs)]);
  }

  /** Returns true when this process may decide about the organization without knowing what it has used. */
  mayGuess(org_id: string): boolean {
    return !this.#limited.has(org_id) || this.#barrier.mayGuess;
  }

  /** Returns true once every hard limit can be decided, and from then on. */
  isReady(): boolean {
    if (this.#barrier.mayGuess) this.#unknown.clear();
    for (const org_id of this.#unknown) {
      const record = this.#deps.budgets.get(org_id);
      if (record === null || !hasHardLimit(record) || this.isKnown(org_id)) this.#unknown.delete(org_id);
    }
    return this.#unknown.size === 0;
  }

  stop(): void {
    this.#stopped.abort();
  }

  async #count(newest: ReadonlyMap<number, number>): Promise<void> {
    const { log, partitions, prices, ledger, onProblem } = this.#deps;
    const whole = await countBacklog({
      log,
      partitions,
      newest,
      accountsOf: (event) => accountsOf(event).filter((account) => this.#limited.has(account)),
      take: (account, events, position) => {
        ledger.countLogged(account, usesOf(prices, events), position);
      },
      signal: this.#stopped.signal,
      onProblem,
    });
    if (whole) this.#barrier.counted();
  }
}

/** Returns the position of the newest message by partition; none for a partition whose streams are empty. */
async function newestOf({ log, partitions }: Pick<StartupKnowledgeDeps, 'log' | 'partitions'>) {
  const newest = new Map<number, number>();
  for (const stream of log.streams.layout.streams) {
    const state = await streamState(log.jsm, stream.name);
    if (state === null || state.messages === 0) continue;
    for (const partition of stream.partitionsOf(partitions)) newest.set(partition, stream.position(state.last_seq));
  }
  return newest;
}
