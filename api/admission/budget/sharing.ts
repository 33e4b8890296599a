// Carries what each API process lets in of orgs with a hard limit to the others, over plain NATS messages that nobody keeps, so
// that a limit which one process reaches refuses in all of them about a millisecond later, and not only when it has landed.
// The same messages say that a process is alive, and by their echo how far its own knowledge of the others reaches.
// In: this process's reservations. Out: the others', in the same ledger, given back by the same landings as own ones.
// Guarantees: nothing here blocks a request or throws into one; a message that is lost is made up for by the landing.
import { randomUUID } from 'node:crypto';
import type { Msg, NatsConnection } from '@nats-io/transport-node';
import { addUsed, isNothing, nothingUsed, type Used } from '../../../pipeline/domain/budgets/budget.ts';
import { burstOf, type View } from '../../../pipeline/domain/budgets/margin.ts';
import type { Reservation, UsageLedger } from '../../../pipeline/domain/budgets/usage_ledger.ts';
import {
  type Reservations,
  reservationsShape,
  reservationsSubject,
  reservingProcess,
  type UseRow,
} from '../../../schemas/signals/reservations.ts';
import { Echo } from './echo.ts';
import type { Crossing } from './gate.ts';
import { type Begun, Held } from './reservations.ts';
import { GONE_MS, Peers } from './peers.ts';
import { rowOf, useOf } from './use_rows.ts';

/** Messages of a process are at least so far apart; what is let in meanwhile travels together. */
const PACE_MS = 1;
/** A process that has nothing to tell says that it is there. */
const HERE_MS = 100;
/** Uses and places of one message; a request adds at most one of each for each of its 1,000 events. Below 3 MiB with the longest names. */
export const ITEMS_MAX = 1000;
/** What was not told of for so long has ended unheard, or its process died: what lasts is told again, see held.ts. */
const OPEN_MS_MAX = 3000;
const SWEEP_MS = 500;
/** Reservations of others that are open at a time; more are not counted before they land. */
const OPEN_MAX = 100_000;
/** What the others had let in when this process came has landed by then, as a rule: before, they rather ask another. */
const READY_MS = 2000;

type News = Pick<Reservations, 'begun' | 'confirmed' | 'cancelled' | 'crossed'>;

const noNews = (): News => ({ begun: [], confirmed: [], cancelled: [], crossed: [] });
const N_AT = '{"n":'.length;
const N_LENGTH = 16;

export interface SharingDeps {
  nc: NatsConnection;
  ledger: Pick<UsageLedger, 'reserve'>;
  /** Told of limits that another process has seen reached. */
  onCrossing: (crossing: Crossing) => void;
  /** Told of messages that are not what they should be. */
  onProblem: (problem: string, cause: unknown) => void;
}

/** Another process's reservation that has not ended yet. */
interface Open {
  reservation: Reservation;
  /** When it was told last, on the monotonic clock. */
  heard_at: number;
}

export class LetInSharing {
  readonly id: string = randomUUID();
  readonly #deps: SharingDeps;
  readonly #own = reservationsSubject(this.id);
  readonly #peers = new Peers(this.id);
  readonly #echo = new Echo();
  /** By org: what was let in here, or is asked for, and has not ended. */
  readonly #underWay = new Map<string, Used>();
  readonly #held = new Held();
  /** By sender and number, in the order in which they were told last. */
  readonly #open = new Map<string, Open>();
  readonly #stopHearing: () => void;
  readonly #timers: NodeJS.Timeout[];
  #news = noNews();
  /** Uses and places in it. */
  #items = 0;
  #serial = 0;
  #messages = 0;
  #sent_at = 0;
  #sending = false;
  #closed = false;
  /** Since when the connection has been up, on the monotonic clock; null while it is not. */
  #connected_at: number | null = performance.now();
  /** Whether it was told that this process is ready: from then on the others rank it so, and it ranks itself so. */
  #toldReady = false;

  constructor(deps: SharingDeps) {
    this.#deps = deps;
    const heard = deps.nc.subscribe(reservationsSubject('*'), {
      callback: (error, received) => {
        if (error === null) this.#received(received);
      },
    });
    this.#stopHearing = () => {
      heard.unsubscribe();
    };
    this.#timers = [
      setInterval(() => {
        this.#sweep();
      }, SWEEP_MS),
      setInterval(() => {
        this.#tellAgain();
        if (performance.now() - this.#sent_at >= HERE_MS / 2) this.#send();
      }, HERE_MS),
    ];
    for (const timer of this.#timers) timer.unref();
    void this.#followConnection();
    this.#send();
  }

  get connected(): boolean {
    return this.#connected_at !== null && !this.#deps.nc.isClosed();
  }

  /** How far this process's knowledge of the org's use reaches. @param uses what is asked to be let in now */
  view(org_id: string, uses: readonly Used[]): View {
    const asked = nothingUsed();
    for (const use of uses) addUsed(asked, use);
    const burst = burstOf(this.#underWay.get(org_id) ?? nothingUsed(), asked);
    const { surely } = this.#echo;
    // Who has just come back may have missed everything, also that there are others.
    const joined = surely - (this.#connected_at ?? Infinity) >= GONE_MS;
    const processes = 1 + this.#peers.others;
    return joined
      ? { processes, age_ms: Math.max(0, performance.now() - surely), burst }
      : { processes: Math.max(2, processes), age_ms: Infinity, burst };
  }

  /** Who decides about the org, and who does when the one before does not answer: ids of processes. */
  homesOf(org_id: string): string[] {
    return this.#peers.homesOf(org_id, this.#toldReady);
  }

  /** It did not answer. */
  silent(id: string): void {
    this.#peers.silent(id);
  }

  /** A number for a reservation, or for one that is asked for. */
  nextId(): number {
    return ++this.#serial;
  }

  /** Tells the others of what was let in. @returns the reservation, whose end is told too */
  told(org_id: string, reservation: Reservation, id = this.nextId()): Reservation {
    const { uses } = reservation;
    const begun: Begun = [id, org_id, uses.map(rowOf)];
    this.#news.begun.push(begun);
    this.#held.begin(begun, performance.now());
    this.underWay(org_id, uses, 1);
    this.#schedule(uses.length);
    return {
      uses,
      confirm: (positions) => {
        reservation.confirm(positions);
        this.underWay(org_id, uses, -1);
        this.#held.end(id);
        this.#news.confirmed.push([id, [...positions]]);
        this.#schedule(positions.size);
      },
      cancel: () => {
        reservation.cancel();
        this.underWay(org_id, uses, -1);
        this.#held.end(id);
        this.cancelled(id);
      },
    };
  }

  /** Counts uses as under way here, or no more: a measure of what comes at once. */
  underWay(org_id: string, uses: readonly Used[], sign: 1 | -1): void {
    const sum = this.#underWay.get(org_id) ?? nothingUsed();
    for (const use of uses) addUsed(sum, use, sign);
    if (isNothing(sum)) this.#underWay.delete(org_id);
    else this.#underWay.set(org_id, sum);
  }

  /** What was let in or asked for under this number did not come in. */
  cancelled(id: number): void {
    this.#news.cancelled.push(id);
    this.#schedule(1);
  }

  crossed({ org_id, period_start, scope, hard_limit, cost_pico_usd }: Crossing): void {
    this.#news.crossed.push([org_id, period_start, scope, hard_limit, String(cost_pico_usd)]);
    this.#schedule(1);
  }

  /** Hands over what there is to tell, ahead of whatever is published next. */
  flush(): void {
    if (this.#items > 0) this.#send();
  }

  /** Keeps what was let in here for another, as if that had told of it. @returns false where there is no room for it */
  hold(sender: string, id: number, reservation: Reservation): boolean {
    if (this.#open.size >= OPEN_MAX) return false;
    this.#open.set(keyOf(sender, id), { reservation, heard_at: performance.now() });
    return true;
  }

  close(): void {
    this.#closed = true;
    for (const timer of this.#timers) clearInterval(timer);
    this.#send(true);
    if (!this.#deps.nc.isClosed()) this.#stopHearing();
  }

  #tellAgain(): void {
    const begun = this.#held.due(performance.now());
    if (begun.length === 0) return;
    this.#news.begun.push(...begun);
    this.#schedule(begun.reduce((sum, [, , uses]) => sum + uses.length, 0));
  }

  #schedule(items: number): void {
    this.#items += items;
    if (this.#items >= ITEMS_MAX) this.#send();
    if (this.#sending) return;
    this.#sending = true;
    const send = () => {
      this.#sending = false;
      this.flush();
    };
    // At the end of this turn of the event loop, so that what came in together travels together.
    if (performance.now() - this.#sent_at >= PACE_MS) setImmediate(send);
    else setTimeout(send, PACE_MS);
  }

  #send(gone = false): void {
    const news = this.#news;
    this.#news = noNews();
    this.#items = 0;
    // Without a connection the client throws it away, and nothing is let in either.
    if (!this.connected || (this.#closed && !gone)) return;
    const now = performance.now();
    this.#sent_at = now;
    this.#echo.sent(++this.#messages, now);
    const ready = now - (this.#connected_at ?? now) >= READY_MS;
    this.#deps.nc.publish(this.#own, JSON.stringify({ n: this.#messages, ready, gone, ...news }));
  }

  #received(received: Msg): void {
    if (received.subject !== this.#own) {
      this.#hear(reservingProcess(received.subject), received.string());
      return;
    }
    this.#echo.heard(
      Number.parseInt(Buffer.from(received.data.subarray(N_AT, N_AT + N_LENGTH)).toString('latin1'), 10),
    );
    const { surely } = this.#echo;
    this.#toldReady = surely - (this.#connected_at ?? Infinity) >= READY_MS;
    if (surely - (this.#connected_at ?? Infinity) >= GONE_MS) this.#peers.forget(surely);
  }

  #hear(sender: string, text: string): void {
    let heard: Reservations;
    try {
      heard = reservationsShape.parse(JSON.parse(text));
    } catch (cause) {
      this.#deps.onProblem('a message about what another process let in is not what it should be', cause);
      return;
    }
    if (heard.gone) this.#peers.gone(sender);
    else this.#peers.heard(sender, heard.ready, performance.now());
    // A reservation ends in its own message at the earliest.
    for (const [id, org_id, uses] of heard.begun) this.#begin(sender, id, org_id, uses);
    for (const [id, positions] of heard.confirmed) this.#take(sender, id)?.confirm(new Map(positions));
    for (const id of heard.cancelled) this.#take(sender, id)?.cancel();
    for (const [org_id, period_start, scope, hard_limit, cost] of heard.crossed)
      this.#deps.onCrossing({ org_id, period_start, scope, hard_limit, cost_pico_usd: BigInt(cost) });
  }

  #begin(sender: string, id: number, org_id: string, uses: readonly UseRow[]): void {
    // What was let in here for that process, or was told before, is counted already.
    const known = this.#take(sender, id);
    if (known !== undefined) this.hold(sender, id, known);
    else if (this.#open.size < OPEN_MAX) this.hold(sender, id, this.#deps.ledger.reserve(org_id, uses.map(useOf)));
  }

  #take(sender: string, id: number): Reservation | undefined {
    const key = keyOf(sender, id);
    const open = this.#open.get(key);
    this.#open.delete(key);
    return open?.reservation;
  }

  #sweep(): void {
    // After a pause the ends may be waiting to be heard.
    const before = this.#echo.surely - OPEN_MS_MAX;
    for (const [key, { reservation, heard_at }] of this.#open) {
      if (heard_at > before) return;
      this.#open.delete(key);
      reservation.cancel();
    }
  }

  async #followConnection(): Promise<void> {
    for await (const { type } of this.#deps.nc.status()) {
      if (this.#closed) return;
      if (type === 'disconnect' || type === 'staleConnection') this.#connected_at = null;
      if (type === 'reconnect') this.#connected_at = performance.now();
    }
  }
}

const keyOf = (sender: string, id: number): string => `${sender} ${String(id)}`;
