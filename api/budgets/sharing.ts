// Carries what each API process lets in of orgs with a hard limit to the others, over plain NATS messages that nobody keeps, so
// that a limit which one process reaches refuses in all of them about a millisecond later, and not only when it has landed.
// In: this process's reservations. Out: the others', in the same ledger, given back by the same landings as own ones.
// Guarantees: nothing here blocks a request or throws into one; a message that is lost is made up for by the landing.
import { randomUUID } from 'node:crypto';
import type { NatsConnection } from '@nats-io/transport-node';
import { z } from 'zod';
import type { Reservation, UsageLedger } from '../../pipeline/domain/usage_ledger.ts';

/** A token of the subject is the sender's id, so that its own messages are known without being parsed. */
const SUBJECT = 'usage.let_in';
/** Messages of a process are at least so far apart; what is let in meanwhile travels together. */
const PACE_MS = 1;
/** A message is sent when it has grown to this; one row adds at most some 200 KiB, what a batch of 1,000 agents is. */
const MESSAGE_BYTES = 256 * 1024;
/** An end that was not heard by now was lost, or its process died: ingest answers within a second. */
const OPEN_MS_MAX = 3000;
const SWEEP_MS = 500;
/** Reservations of others that are open at a time; more are not counted before they land. */
const OPEN_MAX = 100_000;

const count = z.number();
/** Agent, partition, hour, tokens, bytes, microseconds of sandboxes, pico-USD. */
const use = z.tuple([z.string(), count, count, count, count, count, z.string()]);
/** Let in under a number; confirmed at places of the log; cancelled. Rows, as field names would be most of a message. */
const row = z.union([
  z.tuple([z.literal('in'), count, z.string(), z.array(use)]),
  z.tuple([z.literal('at'), count, z.array(z.tuple([count, count]))]),
  z.tuple([z.literal('no'), count]),
]);
const message = z.array(row);
type Row = z.infer<typeof row>;

export interface SharingDeps {
  nc: NatsConnection;
  ledger: Pick<UsageLedger, 'reserve'>;
  /** Told of messages that are not what they should be. */
  onProblem: (problem: string, cause: unknown) => void;
}

/** Another process's reservation that has not ended yet. */
interface Open {
  reservation: Reservation;
  /** On the monotonic clock. */
  since: number;
}

export class LetInSharing {
  readonly #deps: SharingDeps;
  readonly #own = `${SUBJECT}.${randomUUID()}`;
  /** By sender and number, oldest first. */
  readonly #open = new Map<string, Open>();
  readonly #stopHearing: () => void;
  readonly #sweeper: NodeJS.Timeout;
  #rows: string[] = [];
  #bytes = 0;
  #serial = 0;
  #sent_at = 0;
  #sending = false;

  constructor(deps: SharingDeps) {
    this.#deps = deps;
    const heard = deps.nc.subscribe(`${SUBJECT}.*`, {
      callback: (error, received) => {
        if (error === null && received.subject !== this.#own) this.#hear(received.subject, received.string());
      },
    });
    this.#stopHearing = () => {
      heard.unsubscribe();
    };
    this.#sweeper = setInterval(() => {
      this.#sweep();
    }, SWEEP_MS);
    this.#sweeper.unref();
  }

  /** Tells the others of what was let in. @returns the reservation, whose end is told too */
  told(org_id: string, reservation: Reservation): Reservation {
    const id = ++this.#serial;
    this.#tell([
      'in',
      id,
      org_id,
      reservation.uses.map(({ agent_id, partition, hour, tokens, storage_bytes, sandbox_micros, cost_pico_usd }) => [
        agent_id,
        partition,
        hour,
        tokens,
        storage_bytes,
        sandbox_micros,
        String(cost_pico_usd),
      ]),
    ]);
    return {
      uses: reservation.uses,
      confirm: (positions) => {
        reservation.confirm(positions);
        this.#tell(['at', id, [...positions]]);
      },
      cancel: () => {
        reservation.cancel();
        this.#tell(['no', id]);
      },
    };
  }

  close(): void {
    clearInterval(this.#sweeper);
    if (!this.#deps.nc.isClosed()) this.#stopHearing();
  }

  #tell(one: Row): void {
    const text = JSON.stringify(one);
    this.#rows.push(text);
    this.#bytes += text.length;
    if (this.#bytes >= MESSAGE_BYTES) this.#send();
    else if (!this.#sending) {
      this.#sending = true;
      const send = () => {
        this.#sending = false;
        this.#send();
      };
      // At the end of this turn of the event loop, so that what came in together travels together.
      if (performance.now() - this.#sent_at >= PACE_MS) setImmediate(send);
      else setTimeout(send, PACE_MS);
    }
  }

  #send(): void {
    const rows = this.#rows;
    this.#rows = [];
    this.#bytes = 0;
    this.#sent_at = performance.now();
    // Without a connection the client throws it away, and nothing is let in either.
    if (rows.length > 0 && !this.#deps.nc.isClosed()) this.#deps.nc.publish(this.#own, `[${rows.join(',')}]`);
  }

  #hear(sender: string, text: string): void {
    let rows: Row[];
    try {
      rows = message.parse(JSON.parse(text));
    } catch (cause) {
      this.#deps.onProblem('a message about what another process let in is not what it should be', cause);
      return;
    }
    for (const one of rows) {
      const key = `${sender} ${String(one[1])}`;
      if (one[0] === 'in') this.#begin(key, one[2], one[3]);
      else if (one[0] === 'at') this.#take(key)?.confirm(new Map(one[2]));
      else this.#take(key)?.cancel();
    }
  }

  #begin(key: string, org_id: string, uses: readonly z.infer<typeof use>[]): void {
    if (this.#open.size >= OPEN_MAX) return;
    const reservation = this.#deps.ledger.reserve(
      org_id,
      uses.map(([agent_id, partition, hour, tokens, storage_bytes, sandbox_micros, cost]) => ({
        agent_id,
        partition,
        hour,
        tokens,
        storage_bytes,
        sandbox_micros,
        cost_pico_usd: BigInt(cost),
      })),
    );
    this.#open.set(key, { reservation, since: performance.now() });
  }

  #take(key: string): Reservation | undefined {
    const open = this.#open.get(key);
    this.#open.delete(key);
    return open?.reservation;
  }

  #sweep(): void {
    const before = performance.now() - OPEN_MS_MAX;
    for (const [key, { reservation, since }] of this.#open) {
      if (since > before) return;
      this.#open.delete(key);
      reservation.cancel();
    }
  }
}
