// Shares reservations between the API processes, over plain NATS messages that nobody stores. A
// limit that one process reaches rejects in all of them a few milliseconds later, rather than only
// after landing. The same messages are the heartbeats of a process, and their echo shows how far
// its own knowledge of the others reaches. Takes this process's reservations; reserves those of the
// others in the same ledger, where landings release both. Nothing here blocks a request or throws
// into one; the landing makes up for a lost message.
import { randomUUID } from 'node:crypto';
import { type Msg, type NatsConnection, RequestError } from '@nats-io/transport-node';
import type { ReportProblem } from '../../../ops/platform/report_problem.ts';
import { addUsed, isNothing, nothingUsed, type Used } from '../../../pipeline/domain/budgets/budget.ts';
import { burstOf, type View } from '../../../pipeline/domain/budgets/margin.ts';
import type { Reservation, UsageLedger } from '../../../pipeline/domain/budgets/usage_ledger.ts';
import { budgetQuestionSubject } from '../../../schemas/signals/budget_questions.ts';
import {
  type Reservations,
  reservationsShape,
  reservationsSubject,
  reservingProcess,
  type UseRow,
} from '../../../schemas/signals/reservations.ts';
import { Echo } from './echo.ts';
import type { Crossing } from './gate.ts';
import { OpenElsewhere, type OpenElsewhereDeps } from './open_elsewhere.ts';
import { type Announcement, OpenReservations } from './reservations.ts';
import { PEER_EXPIRY_MS, Peers } from './peers.ts';
import { rowOf, useOf } from './use_rows.ts';

/**
 * Minimum milliseconds between messages of a process; what is admitted meanwhile shares a message.
 * Each message costs its sender about 50 µs of CPU, and the margin before a limit (margin.ts) covers
 * the delay.
 */
const PACE_MS = 5;
/** Milliseconds between heartbeats of a process that has nothing to announce. */
const HEARTBEAT_MS = 100;
/**
 * Maximum number of uses and positions of one message; a request adds at most one of each for each
 * of its 1,000 events. Below 3 MiB with the longest names.
 */
export const ITEMS_MAX = 1000;
/** Milliseconds between two searches for reservations whose end will not be heard. */
const SETTLE_MS = 250;
/** A process that is alive and not paused answers within this time, in milliseconds. */
const PROBE_MS = 500;
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
  /** Returns the position of the newest message of the ingest log by partition. */
  logEnd: OpenElsewhereDeps['logEnd'];
  /** Called with messages that cannot be parsed. */
  onProblem: ReportProblem;
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
  readonly #openElsewhere: OpenElsewhere;
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
    this.#openElsewhere = new OpenElsewhere(deps);
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
        void this.#openElsewhere.settle(this.#echo.heardUntil);
      }, SETTLE_MS),
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
    const open = this.#openHere.begin(begun, performance.now());
    this.countInProgress(org_id, uses, 1);
    this.#schedule(uses.length);
    return {
      uses,
      confirm: (positions) => {
        reservation.confirm(positions);
        this.countInProgress(org_id, uses, -1);
        this.#openHere.end(open);
        this.#pending.confirmed.push([id, [...positions]]);
        this.#schedule(positions.size);
      },
      cancel: () => {
        reservation.cancel();
        this.countInProgress(org_id, uses, -1);
        this.#openHere.end(open);
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
    return this.#openElsewhere.keep(sender, id, reservation);
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
    if (heardUntil - (this.#connected_at ?? Infinity) < PEER_EXPIRY_MS) return;
    for (const silent of this.#peers.forget(heardUntil)) void this.#probe(silent);
  }

  #hear(sender: string, text: string): void {
    let heard: Reservations;
    try {
      heard = reservationsShape.parse(JSON.parse(text));
    } catch (cause) {
      this.#deps.onProblem('a reservation announced by another process cannot be parsed', cause);
      return;
    }
    if (heard.gone) {
      this.#peers.gone(sender);
      this.#openElsewhere.gone(sender);
    } else {
      this.#peers.heard(sender, heard.ready, performance.now());
      this.#openElsewhere.heard(sender);
    }
    // A reservation ends in the message that begins it, at the earliest.
    for (const [id, org_id, uses] of heard.begun) this.#begin(sender, id, org_id, uses);
    for (const [id, positions] of heard.confirmed) this.#openElsewhere.take(sender, id)?.confirm(new Map(positions));
    for (const id of heard.cancelled) this.#openElsewhere.take(sender, id)?.cancel();
    for (const [org_id, period_start, scope, hard_limit, cost] of heard.crossed)
      for (const listener of this.#crossingListeners)
        listener({ org_id, period_start, scope, hard_limit, cost_pico_usd: BigInt(cost) });
  }

  #begin(sender: string, id: number, org_id: string, uses: readonly UseRow[]): void {
    // A reservation made here for that process, or announced before, is counted already.
    const known = this.#openElsewhere.take(sender, id);
    if (known !== undefined) this.keep(sender, id, known);
    else if (!this.#openElsewhere.full) this.keep(sender, id, this.#deps.ledger.reserve(org_id, uses.map(useOf)));
  }

  /**
   * Asks whether a silent process is dead or only paused: the server reports at once that nobody
   * subscribes to the questions of a dead one.
   */
  async #probe(silent: string): Promise<void> {
    try {
      const question = JSON.stringify({ asker: this.id, asks: [] });
      await this.#deps.nc.request(budgetQuestionSubject(silent), question, { timeout: PROBE_MS });
    } catch (cause) {
      if (cause instanceof RequestError && cause.isNoResponders()) this.#openElsewhere.gone(silent);
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
