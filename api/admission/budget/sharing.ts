// Shares reservations between the API processes, over plain NATS messages that nobody stores. A
// limit that one process reaches rejects in all of them about a millisecond later, rather than only
// after landing. The same messages are the heartbeats of a process, and their echo shows how far
// its own knowledge of the others reaches. Takes this process's reservations; reserves those of the
// others in the same ledger, where landings release both. Nothing here blocks a request or throws
// into one; the landing makes up for a lost message.
import { randomUUID } from 'node:crypto';
import type { Msg, NatsConnection } from '@nats-io/transport-node';
import type { ReportProblem } from '../../../ops/platform/report_problem.ts';
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
import { type Announcement, OpenReservations } from './reservations.ts';
import { PEER_EXPIRY_MS, Peers } from './peers.ts';
import { rowOf, useOf } from './use_rows.ts';

/**
 * Minimum milliseconds between messages of a process; what is admitted meanwhile shares a message.
 */
const PACE_MS = 1;
/** Milliseconds between heartbeats of a process that has nothing to announce. */
const HEARTBEAT_MS = 100;
/**
 * Maximum number of uses and positions of one message; a request adds at most one of each for each
 * of its 1,000 events. Below 3 MiB with the longest names.
 */
export const ITEMS_MAX = 1000;
/**
 * A reservation that has not been announced for this long has ended unheard, or its process died.
 * Lasting ones are announced again, see reservations.ts.
 */
const OPEN_MS_MAX = 3000;
const SWEEP_MS = 500;
/**
 * Maximum number of open reservations of other processes; further ones count only once they land.
 */
const OPEN_MAX = 100_000;
/**
 * By then, what the others had admitted before this process started has usually landed. Until then,
 * the others prefer to ask another process.
 */
const READY_MS = 2000;

type Announcements = Pick<Reservations, 'begun' | 'confirmed' | 'cancelled' | 'crossed'>;

const noAnnouncements = (): Announcements => ({ begun: [], confirmed: [], cancelled: [], crossed: [] });
const N_AT = '{"n":'.length;
const N_LENGTH = 16;

export interface SharingDeps {
  nc: NatsConnection;
  ledger: Pick<UsageLedger, 'reserve'>;
  /** Called with messages that cannot be parsed. */
  onProblem: ReportProblem;
}

/** An open reservation of another process. */
interface Open {
  reservation: Reservation;
  /** Time of its last announcement, milliseconds of the monotonic clock. */
  heard_at: number;
}

export class ReservationSharing {
  readonly id: string = randomUUID();
  readonly #deps: SharingDeps;
  readonly #own = reservationsSubject(this.id);
  readonly #peers = new Peers(this.id);
  readonly #echo = new Echo();
  /** Use that is reserved or asked for in this process and has not ended, by organization. */
  readonly #inProgress = new Map<string, Used>();
  readonly #openHere = new OpenReservations();
  /** By sender and number, in the order of their last announcement. */
  readonly #openElsewhere = new Map<string, Open>();
  readonly #crossingListeners: ((crossing: Crossing) => void)[] = [];
  readonly #stopHearing: () => void;
  readonly #timers: NodeJS.Timeout[];
  #pending = noAnnouncements();
  /** Uses and positions in #pending. */
  #items = 0;
  #serial = 0;
  #messages = 0;
  #sent_at = 0;
  #sending = false;
  #closed = false;
  /**
   * Time since which the connection has been up, milliseconds of the monotonic clock; null while it
   * is down.
   */
  #connected_at: number | null = performance.now();
  /**
   * True once this process has announced that it is ready. From then on every process, including
   * this one, ranks it as ready.
   */
  #announcedReady = false;

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
        this.#announceAgain();
        if (performance.now() - this.#sent_at >= HEARTBEAT_MS / 2) this.#send();
      }, HEARTBEAT_MS),
    ];
    for (const timer of this.#timers) timer.unref();
    void this.#followConnection();
    this.#send();
  }

  get connected(): boolean {
    return this.#connected_at !== null && !this.#deps.nc.isClosed();
  }

  /**
   * Returns how far this process's knowledge of the organization's use reaches.
   * @param uses what the request in question uses
   */
  view(org_id: string, uses: readonly Used[]): View {
    const asked = nothingUsed();
    for (const use of uses) addUsed(asked, use);
    const burst = burstOf(this.#inProgress.get(org_id) ?? nothingUsed(), asked);
    const { heardUntil } = this.#echo;
    // A process that has just reconnected may have missed everything, also that there are others.
    const joined = heardUntil - (this.#connected_at ?? Infinity) >= PEER_EXPIRY_MS;
    const processes = 1 + this.#peers.others;
    return joined
      ? { processes, age_ms: Math.max(0, performance.now() - heardUntil), burst }
      : { processes: Math.max(2, processes), age_ms: Infinity, burst };
  }

  /**
   * Returns the ids of the processes that decide about the organization, in the order in which they
   * are asked.
   */
  decidersOf(org_id: string): string[] {
    return this.#peers.decidersOf(org_id, this.#announcedReady);
  }

  /** Marks a process that did not answer. */
  silent(id: string): void {
    this.#peers.silent(id);
  }

  /** Returns a number for a reservation, or for one that is asked for. */
  nextId(): number {
    return ++this.#serial;
  }

  /**
   * Announces a reservation to the other processes.
   * @returns the reservation, whose end is announced too
   */
  announce(org_id: string, reservation: Reservation, id = this.nextId()): Reservation {
    const { uses } = reservation;
    const begun: Announcement = [id, org_id, uses.map(rowOf)];
    this.#pending.begun.push(begun);
    this.#openHere.begin(begun, performance.now());
    this.countInProgress(org_id, uses, 1);
    this.#schedule(uses.length);
    return {
      uses,
      confirm: (positions) => {
        reservation.confirm(positions);
        this.countInProgress(org_id, uses, -1);
        this.#openHere.end(id);
        this.#pending.confirmed.push([id, [...positions]]);
        this.#schedule(positions.size);
      },
      cancel: () => {
        reservation.cancel();
        this.countInProgress(org_id, uses, -1);
        this.#openHere.end(id);
        this.announceCancelled(id);
      },
    };
  }

  /**
   * Adds uses to, or removes them from, those in progress here: the measure of what may come at
   * once.
   */
  countInProgress(org_id: string, uses: readonly Used[], sign: 1 | -1): void {
    const sum = this.#inProgress.get(org_id) ?? nothingUsed();
    for (const use of uses) addUsed(sum, use, sign);
    if (isNothing(sum)) this.#inProgress.delete(org_id);
    else this.#inProgress.set(org_id, sum);
  }

  /**
   * Announces that the reservation with this number was never published, so that the others release
   * it.
   */
  announceCancelled(id: number): void {
    this.#pending.cancelled.push(id);
    this.#schedule(1);
  }

  /** Calls back with every limit that another process has seen reached. */
  onCrossing(listener: (crossing: Crossing) => void): void {
    this.#crossingListeners.push(listener);
  }

  announceCrossing({ org_id, period_start, scope, hard_limit, cost_pico_usd }: Crossing): void {
    this.#pending.crossed.push([org_id, period_start, scope, hard_limit, String(cost_pico_usd)]);
    this.#schedule(1);
  }

  /** Sends pending announcements ahead of whatever is published next. */
  flush(): void {
    if (this.#items > 0) this.#send();
  }

  /**
   * Keeps a reservation made here for another process, as if that process had announced it.
   * @returns false where there is no room for it
   */
  keep(sender: string, id: number, reservation: Reservation): boolean {
    if (this.#openElsewhere.size >= OPEN_MAX) return false;
    this.#openElsewhere.set(keyOf(sender, id), { reservation, heard_at: performance.now() });
    return true;
  }

  close(): void {
    this.#closed = true;
    for (const timer of this.#timers) clearInterval(timer);
    this.#send(true);
    if (!this.#deps.nc.isClosed()) this.#stopHearing();
  }

  #announceAgain(): void {
    const begun = this.#openHere.due(performance.now());
    if (begun.length === 0) return;
    this.#pending.begun.push(...begun);
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
    // Sends at the end of this turn of the event loop, so that reservations of one turn share a
    // message.
    if (performance.now() - this.#sent_at >= PACE_MS) setImmediate(send);
    else setTimeout(send, PACE_MS);
  }

  #send(gone = false): void {
    const announcements = this.#pending;
    this.#pending = noAnnouncements();
    this.#items = 0;
    // Without a connection the client drops the message, and nothing is published either.
    if (!this.connected || (this.#closed && !gone)) return;
    const now = performance.now();
    this.#sent_at = now;
    this.#echo.sent(++this.#messages, now);
    const ready = now - (this.#connected_at ?? now) >= READY_MS;
    this.#deps.nc.publish(this.#own, JSON.stringify({ n: this.#messages, ready, gone, ...announcements }));
  }

  #received(received: Msg): void {
    if (received.subject !== this.#own) {
      this.#hear(reservingProcess(received.subject), received.string());
      return;
    }
    this.#echo.heard(
      Number.parseInt(Buffer.from(received.data.subarray(N_AT, N_AT + N_LENGTH)).toString('latin1'), 10),
    );
    const { heardUntil } = this.#echo;
    this.#announcedReady = heardUntil - (this.#connected_at ?? Infinity) >= READY_MS;
    if (heardUntil - (this.#connected_at ?? Infinity) >= PEER_EXPIRY_MS) this.#peers.forget(heardUntil);
  }

  #hear(sender: string, text: string): void {
    let heard: Reservations;
    try {
      heard = reservationsShape.parse(JSON.parse(text));
    } catch (cause) {
      this.#deps.onProblem('a reservation announced by another process cannot be parsed', cause);
      return;
    }
    if (heard.gone) this.#peers.gone(sender);
    else this.#peers.heard(sender, heard.ready, performance.now());
    // A reservation ends in the message that begins it, at the earliest.
    for (const [id, org_id, uses] of heard.begun) this.#begin(sender, id, org_id, uses);
    for (const [id, positions] of heard.confirmed) this.#take(sender, id)?.confirm(new Map(positions));
    for (const id of heard.cancelled) this.#take(sender, id)?.cancel();
    for (const [org_id, period_start, scope, hard_limit, cost] of heard.crossed)
      for (const listener of this.#crossingListeners)
        listener({ org_id, period_start, scope, hard_limit, cost_pico_usd: BigInt(cost) });
  }

  #begin(sender: string, id: number, org_id: string, uses: readonly UseRow[]): void {
    // A reservation made here for that process, or announced before, is counted already.
    const known = this.#take(sender, id);
    if (known !== undefined) this.keep(sender, id, known);
    else if (this.#openElsewhere.size < OPEN_MAX)
      this.keep(sender, id, this.#deps.ledger.reserve(org_id, uses.map(useOf)));
  }

  #take(sender: string, id: number): Reservation | undefined {
    const key = keyOf(sender, id);
    const open = this.#openElsewhere.get(key);
    this.#openElsewhere.delete(key);
    return open?.reservation;
  }

  #sweep(): void {
    // After a pause, messages that end reservations may be waiting to be heard.
    const before = this.#echo.heardUntil - OPEN_MS_MAX;
    for (const [key, { reservation, heard_at }] of this.#openElsewhere) {
      if (heard_at > before) return;
      this.#openElsewhere.delete(key);
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

const keyOf = (sender: string, id: number): string => `${sender} ${id}`;
