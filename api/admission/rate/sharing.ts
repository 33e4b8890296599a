// Shares granted tokens between the API processes, over plain NATS messages that nobody stores:
// rates older than a moment mean nothing. Takes a process's TenantLimits; nothing here blocks a
// request or throws into one. While NATS is away each process limits by itself, and does not report
// those grants later, because refill has paid for them long since.
//
// Exactness: a process reports a grant at the end of the turn of its event loop, or PACED_MS later
// under steady load; the others know of it about a millisecond after that. Grants at the same
// instant can exceed the bucket, at worst by one capacity for each further process. Each process
// debits what the others granted, goes into debt, and grants nothing until refill has paid the
// debt. Over any time longer than the debt the total is that of one process.
import { randomUUID } from 'node:crypto';
import type { Msg, NatsConnection } from '@nats-io/transport-node';
import type { ReportProblem } from '../../../ops/platform/report_problem.ts';
import {
  LIMIT_STATE_SUBJECT,
  type LimitRow,
  limitStateShape,
  SPENT_TENANTS_MAX,
  spentShape,
  spentSubject,
  STATE_TENANTS_MAX,
  TENANT_LENGTH_MAX,
} from '../../../schemas/signals/rate_limits.ts';
import { fullBucket, refill, take } from './bucket.ts';
import type { Spent, TenantLimits } from './tenant_limits.ts';

/**
 * Messages that a process may send at once, so that the others hear of a burst while it lasts, and
 * within a minute.
 */
const MESSAGES_BURST = 100;
const MESSAGES_PER_MINUTE = 6000;
/** Milliseconds between messages beyond these bounds; grants in between share a message. */
const PACED_MS = 5;
/**
 * How long a starting process waits for the state of the others. A process that is alone does not
 * wait.
 */
const STATE_WAIT_MS = 250;
/** Milliseconds between sweeps of full buckets. */
const SWEEP_MS = 30_000;

export interface SharingDeps {
  nc: NatsConnection;
  /** The client drops messages that are published while the connection is down. */
  tracked: { readonly connected: boolean };
  /** Called with messages that cannot be parsed. */
  onProblem: ReportProblem;
}

/** Keeps the limits of a process in step with those of the others. */
export interface LimitsSharing {
  /** Reports the last grants and stops. */
  close: () => void;
}

/**
 * Starts sharing. Resolves once this process has the state of the others: without it every start of
 * a process would give each tenant a fresh burst beside the one just used up. A process that starts
 * alone begins with full buckets; a restart of the whole service may give as much. A process that
 * was disconnected asks for the state again when it is back.
 */
export async function shareLimits(limits: TenantLimits, deps: SharingDeps): Promise<LimitsSharing> {
  const { nc, tracked, onProblem } = deps;
  const own = spentSubject(randomUUID());
  const rowsOf = (message: Msg, shape: typeof spentShape): LimitRow[] => {
    try {
      return shape.parse(JSON.parse(message.string()));
    } catch (cause) {
      onProblem(`a message on ${message.subject} cannot be parsed`, cause);
      return [];
    }
  };
  const heard = nc.subscribe(spentSubject('*'), {
    callback: (error, message) => {
      if (error !== null || message.subject === own) return;
      limits.debit(rowsOf(message, spentShape).map(([kind, tenant, tokens]) => ({ kind, tenant, tokens })));
    },
  });
  const adopt = (message: Msg) => {
    limits.adopt(rowsOf(message, limitStateShape).map(([kind, tenant, units]) => ({ kind, tenant, units })));
  };
  // The request carries the state of this process: when two processes come back at once, the first
  // would not find the second yet.
  const askOthers = async () => {
    try {
      const replies = await nc.requestMany(LIMIT_STATE_SUBJECT, stateText(limits), {
        strategy: 'timer',
        maxWait: STATE_WAIT_MS,
      });
      for await (const message of replies) adopt(message);
    } catch {
      // No process answers, or the connection is down again. Reports from now on are received all
      // the same.
    }
  };
  await askOthers();
  // Answering starts after asking, so that NATS tells a process that is alone at once that nobody
  // answers.
  const asked = nc.subscribe(LIMIT_STATE_SUBJECT, {
    callback: (error, message) => {
      if (error !== null) return;
      adopt(message);
      message.respond(stateText(limits));
    },
  });
  const outbox = new Outbox(limits, (spent) => {
    // Grants are not shared while NATS is away; see the file header.
    if (tracked.connected && !nc.isClosed())
      nc.publish(own, rowsText(spent.map(({ kind, tenant, tokens }) => [kind, tenant, tokens])));
  });
  const stopped = new AbortController();
  void onReconnect(nc, stopped.signal, askOthers);
  const sweep = setInterval(() => {
    limits.sweep();
  }, SWEEP_MS);
  sweep.unref();
  return {
    close: () => {
      stopped.abort();
      clearInterval(sweep);
      outbox.close();
      if (nc.isClosed()) return;
      heard.unsubscribe();
      asked.unsubscribe();
    },
  };
}

/** Calls `reconnected` after each reconnect, until the signal aborts. */
async function onReconnect(
  nc: SharingDeps['nc'],
  stopped: AbortSignal,
  reconnected: () => Promise<void>,
): Promise<void> {
  for await (const status of nc.status()) {
    if (stopped.aborted) return;
    if (status.type === 'reconnect') void reconnected();
  }
}

/** Returns the state of this process's buckets as rows. */
const stateText = (limits: TenantLimits): string =>
  rowsText(limits.state(STATE_TENANTS_MAX).map(({ kind, tenant, units }): LimitRow => [kind, tenant, units]));

const rowsText = (rows: readonly LimitRow[]): string =>
  JSON.stringify(rows.filter(([, tenant]) => tenant.length <= TENANT_LENGTH_MAX));

/** Sends the grants of this process at the pace of the bounds above. */
class Outbox {
  readonly #limits: TenantLimits;
  readonly #send: (spent: readonly Spent[]) => void;
  readonly #pace = fullBucket(MESSAGES_PER_MINUTE, MESSAGES_BURST, performance.now());
  #timer: NodeJS.Timeout | undefined;
  #closed = false;

  constructor(limits: TenantLimits, send: (spent: readonly Spent[]) => void) {
    this.#limits = limits;
    this.#send = send;
    limits.onSpent(() => {
      this.#schedule();
    });
  }

  /** Sends the last grants. */
  close(): void {
    clearTimeout(this.#timer);
    this.#flush();
    this.#closed = true;
  }

  #schedule(): void {
    if (this.#closed) return;
    const flush = () => {
      this.#flush();
    };
    refill(this.#pace, performance.now());
    if (take(this.#pace, 1)) setImmediate(flush);
    else this.#timer = setTimeout(flush, PACED_MS);
  }

  #flush(): void {
    if (this.#closed) return;
    for (
      let spent = this.#limits.takeSpent(SPENT_TENANTS_MAX);
      spent.length > 0;
      spent = this.#limits.takeSpent(SPENT_TENANTS_MAX)
    )
      this.#send(spent);
  }
}
