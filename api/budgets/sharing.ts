// Carries what each API process lets in of orgs with a hard limit to the others, over plain NATS messages that nobody keeps, so
// that a limit which one process reaches refuses in all of them about a millisecond later, and not only when it has landed.
// In: this process's reservations. Out: the others', in the same ledger, given back by the same landings as own ones.
// Guarantees: nothing here blocks a request or throws into one; a message that is lost is made up for by the landing.
import { randomUUID } from 'node:crypto';
import type { NatsConnection } from '@nats-io/transport-node';
import { z } from 'zod';
import type { AskedUse, Reservation, UsageLedger } from '../../pipeline/domain/usage_ledger.ts';

/** A token of the subject is the sender's id, so that its own messages are known without being parsed. */
const SUBJECT = 'usage.let_in';
/** Messages of a process are at least so far apart; what is let in meanwhile travels together. */
const PACE_MS = 1;
/** Uses and places of one message; a request adds at most one of each for each of its 1,000 events. Below 3 MiB with the longest names. */
const ITEMS_MAX = 1000;
/** An end that was not heard by now was lost, or its process died: ingest answers within a second. */
const OPEN_MS_MAX = 3000;
const SWEEP_MS = 500;
/** Reservations of others that are open at a time; more are not counted before they land. */
const OPEN_MAX = 100_000;

const count = z.number();
/** Agent, partition, hour, tokens, bytes, microseconds of sandboxes, pico-USD. */
const use = z.tuple([z.string(), count, count, count, count, count, z.string().regex(/^-?\d+$/)]);
/** Number, org and uses of what was let in; number and places of what the log has; numbers of what was cancelled. */
const message = z.object({
  begun: z.array(z.tuple([count, z.string(), z.array(use)])),
  confirmed: z.array(z.tuple([count, z.array(z.tuple([count, count]))])),
  cancelled: z.array(count),
});
type Message = z.infer<typeof message>;

const emptyMessage = (): Message => ({ begun: [], confirmed: [], cancelled: [] });

export interface SharingDeps {
  nc: NatsConnection;
  ledger: Pick<UsageLedger, 'reserve'>;
  /** Told of messages that are not what they should be. */
  onProblem: (problem: string, cause: unknown) => void;
}

const rowOf = ({ agent_id, partition, hour, tokens, storage_bytes, sandbox_micros, cost_pico_usd }: AskedUse): z.infer<typeof use> => [
  agent_id,
  partition,
  hour,
  tokens,
  storage_bytes,
  sandbox_micros,
  String(cost_pico_usd),
];

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
  #next = emptyMessage();
  /** Uses and places in it. */
  #items = 0;
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
    const uses = reservation.uses.map(rowOf);
    this.#next.begun.push([id, org_id, uses]);
    this.#schedule(uses.length);
    return {
      uses: reservation.uses,
      confirm: (positions) => {
        reservation.confirm(positions);
        this.#next.confirmed.push([id, [...positions]]);
        this.#schedule(positions.size);
      },
      cancel: () => {
        reservation.cancel();
        this.#next.cancelled.push(id);
        this.#schedule(1);
      },
    };
  }

  close(): void {
    clearInterval(this.#sweeper);
    if (!this.#deps.nc.isClosed()) this.#stopHearing();
  }

  #schedule(items: number): void {
    this.#items += items;
    if (this.#items >= ITEMS_MAX) this.#send();
    if (this.#sending) return;
    this.#sending = true;
    const send = () => {
      this.#sending = false;
      this.#send();
    };
    // At the end of this turn of the event loop, so that what came in together travels together.
    if (performance.now() - this.#sent_at >= PACE_MS) setImmediate(send);
    else setTimeout(send, PACE_MS);
  }

  #send(): void {
    if (this.#items === 0) return;
    const next = this.#next;
    this.#next = emptyMessage();
    this.#items = 0;
    this.#sent_at = performance.now();
    // Without a connection the client throws it away, and nothing is let in either.
    if (!this.#deps.nc.isClosed()) this.#deps.nc.publish(this.#own, JSON.stringify(next));
  }

  #hear(sender: string, text: string): void {
    let heard: Message;
    try {
      heard = message.parse(JSON.parse(text));
    } catch (cause) {
      this.#deps.onProblem('a message about what another process let in is not what it should be', cause);
      return;
    }
    const keyOf = (id: number): string => `${sender} ${String(id)}`;
    // A reservation ends in its own message at the earliest.
    for (const [id, org_id, uses] of heard.begun) this.#begin(keyOf(id), org_id, uses);
    for (const [id, positions] of heard.confirmed) this.#take(keyOf(id))?.confirm(new Map(positions));
    for (const id of heard.cancelled) this.#take(keyOf(id))?.cancel();
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
