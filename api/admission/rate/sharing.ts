// Carries what each API process granted to the others, over plain NATS messages that nobody keeps: rates older than a moment
// say nothing. In: a process's TenantLimits. Guarantees: nothing here blocks a request or throws into one; while NATS is
// away each process limits by itself, and what it granted meanwhile is not told later, as refill has long paid for it.
//
// How exact it is: a grant is told at the end of the turn of the event loop, or PACED_MS later under steady load, and is known
// to the others about a millisecond after that. What processes grant at the same instant can exceed the bucket, by one
// capacity for each further process at the very worst; each of them debits what the others granted, goes into debt, and
// grants nothing until refill has paid for it. So over any time that is longer than the debt the total is that of one process.
import { randomUUID } from 'node:crypto';
import type { Msg, NatsConnection } from '@nats-io/transport-node';
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

/** Messages that a process may send at once, so that others hear of a burst while it goes on, and in a minute. */
const MESSAGES_BURST = 100;
const MESSAGES_PER_MINUTE = 6000;
/** Beyond them what is granted travels together, so often. */
const PACED_MS = 5;
/** How long a starting process listens for the state of the others. Without others it does not wait at all. */
const STATE_WAIT_MS = 250;
/** Buckets that say nothing are forgotten so often. */
const SWEEP_MS = 30_000;

export interface SharingDeps {
  nc: NatsConnection;
  /** Publishes made while the connection is down are thrown away by the client. */
  tracked: { readonly connected: boolean };
  /** Told of messages that are not what they should be. */
  onProblem: (problem: string, cause: unknown) => void;
}

/** What keeps a process's limits in step with the others'. */
export interface LimitsSharing {
  /** Tells what is still to be told and stops. */
  close: () => void;
}

/**
 * Begins to share, and resolves when what the other processes know is known here too: without it every start of a process
 * would give each tenant a fresh burst beside the one that it has just used up. A process that starts alone begins with full
 * buckets; that much a restart of the whole service may give. A process that was cut off asks again when it is back.
 */
export async function shareLimits(limits: TenantLimits, deps: SharingDeps): Promise<LimitsSharing> {
  const { nc, tracked, onProblem } = deps;
  const own = spentSubject(randomUUID());
  const rowsOf = (message: Msg, shape: typeof spentShape): LimitRow[] => {
    try {
      return shape.parse(JSON.parse(message.string()));
    } catch (cause) {
      onProblem(`a message on ${message.subject} is not what it should be`, cause);
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
  const stateText = () =>
    rowsText(limits.state(STATE_TENANTS_MAX).map(({ kind, tenant, units }): LimitRow => [kind, tenant, units]));
  // The question tells what the asker knows: of two processes that come back, the first would not find the second yet.
  const askOthers = async () => {
    try {
      const replies = await nc.requestMany(LIMIT_STATE_SUBJECT, stateText(), {
        strategy: 'timer',
        maxWait: STATE_WAIT_MS,
      });
      for await (const message of replies) adopt(message);
    } catch {
      // Nobody is there to answer, or the connection went down again: what comes from now on is heard all the same.
    }
  };
  await askOthers();
  // Answering begins after asking, so that a lone process is told at once that nobody answers.
  const asked = nc.subscribe(LIMIT_STATE_SUBJECT, {
    callback: (error, message) => {
      if (error !== null) return;
      adopt(message);
      message.respond(stateText());
    },
  });
  const outbox = new Outbox(limits, (spent) => {
    // Lost while NATS is away, and meant to be.
    if (tracked.connected && !nc.isClosed())
      nc.publish(own, rowsText(spent.map(({ kind, tenant, tokens }) => [kind, tenant, tokens])));
  });
  const stopped = new AbortController();
  void (async () => {
    for await (const status of nc.status()) {
      if (stopped.signal.aborted) return;
      if (status.type === 'reconnect') void askOthers();
    }
  })();
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

const rowsText = (rows: readonly LimitRow[]): string =>
  JSON.stringify(rows.filter(([, tenant]) => tenant.length <= TENANT_LENGTH_MAX));

/** Sends what the limits granted, at the pace above. */
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

  /** Sends the last of it. */
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
