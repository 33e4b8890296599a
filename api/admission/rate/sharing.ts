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
import { z } from 'zod';
import type { ReportProblem } from '../../../ops/platform/report_problem.ts';
import { fullBucket, refill, take } from './bucket.ts';
import type { Spent, TenantLimits } from './tenant_limits.ts';

/**
 * The last token of the subject is the sender's id, so that a process recognizes its own messages
 * without parsing them.
 */
const SPENT_SUBJECT = 'limits.spent';
const STATE_SUBJECT = 'limits.state';

/**
 * Messages that a process may send at once, so that the others hear of a burst while it lasts, and
 * within a minute.
 */
const MESSAGES_BURST = 100;
const MESSAGES_PER_MINUTE = 6000;
/** Milliseconds between messages beyond these bounds; grants in between share a message. */
const PACED_MS = 5;
/**
 * Maximum number of tenants in one message; the next message takes the rest. Below 1 MiB with the
 * longest names.
 */
const SPENT_TENANTS_MAX = 1000;
/**
 * Maximum number of tenants in the state that a starting process receives. Below 4 MiB with the
 * longest names.
 */
const STATE_TENANTS_MAX = 5000;
/**
 * Grants of a tenant with a longer name are not shared: its limits apply to each process by itself.
 * Only a person can have such a name.
 */
const TENANT_LENGTH_MAX = 256;
/**
 * How long a starting process waits for the state of the others. A process that is alone does not
 * wait.
 */
const STATE_WAIT_MS = 250;
/** Milliseconds between sweeps of full buckets. */
const SWEEP_MS = 30_000;

const kind = z.enum(['ingest', 'api', 'app']);
const tenant = z.string().min(1).max(TENANT_LENGTH_MAX);
/**
 * Kind, tenant, and tokens granted or units missing. Rows rather than objects: field names would be
 * most of a message.
 */
const row = z.tuple([kind, tenant, z.int().min(1)]);
const spentShape = z.array(row).max(SPENT_TENANTS_MAX);
const stateShape = z.array(row).max(STATE_TENANTS_MAX);

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
  const own = `${SPENT_SUBJECT}.${randomUUID()}`;
  const rowsOf = (message: Msg, shape: typeof spentShape): Row[] => {
    try {
      return shape.parse(JSON.parse(message.string()));
    } catch (cause) {
      onProblem(`a message on ${message.subject} cannot be parsed`, cause);
      return [];
    }
  };
  const heard = nc.subscribe(`${SPENT_SUBJECT}.*`, {
    callback: (error, message) => {
      if (error !== null || message.subject === own) return;
      limits.debit(rowsOf(message, spentShape).map(([kind, tenant, tokens]) => ({ kind, tenant, tokens })));
    },
  });
  const adopt = (message: Msg) => {
    limits.adopt(rowsOf(message, stateShape).map(([kind, tenant, units]) => ({ kind, tenant, units })));
  };
  const stateText = () =>
    rowsText(limits.state(STATE_TENANTS_MAX).map(({ kind, tenant, units }): Row => [kind, tenant, units]));
  // The request carries the state of this process: when two processes come back at once, the first
  // would not find the second yet.
  const askOthers = async () => {
    try {
      const replies = await nc.requestMany(STATE_SUBJECT, stateText(), { strategy: 'timer', maxWait: STATE_WAIT_MS });
      for await (const message of replies) adopt(message);
    } catch {
      // No process answers, or the connection is down again. Reports from now on are received all
      // the same.
    }
  };
  await askOthers();
  // Answering starts after asking, so that NATS tells a process that is alone at once that nobody
  // answers.
  const asked = nc.subscribe(STATE_SUBJECT, {
    callback: (error, message) => {
      if (error !== null) return;
      adopt(message);
      message.respond(stateText());
    },
  });
  const outbox = new Outbox(limits, (spent) => {
    // Grants are not shared while NATS is away; see the file header.
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

type Row = z.infer<typeof row>;

const rowsText = (rows: readonly Row[]): string =>
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
