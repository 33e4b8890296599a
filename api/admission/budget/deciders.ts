// Near a limit one process decides for all: the org's home, the first in the order in which every process ranks those that are
// alive. In: uses that ask to be let in near a limit. Out: a reservation, or the home's refusal.
//
// Why it is exact: a process tells of what it let in before it asks, over the same connection, and the server hands everything
// on in one order. So a home that reads a question has read what it depends on, however late it reads it; its own questions
// take the same way. It decides and reserves in one turn of its event loop. The asker takes the answer in the turn in which it
// comes, looks whether it knows more than the home, and tells of what it let in before it stores anything.
// A home that is gone is known at once (nobody hears the question) or after ANSWER_MS (it is paused): then the next in the
// order is asked, and after HOMES_MAX of them the process decides by what it knows itself. Nothing is refused for want of an answer.
import type { Msg, NatsConnection } from '@nats-io/transport-node';
import type { z } from 'zod';
import type { AskedUse, Reservation } from '../../../pipeline/domain/budgets/usage_ledger.ts';
import {
  budgetAnswersShape,
  budgetAnswerSubject,
  type BudgetQuestion,
  budgetQuestionShape,
  budgetQuestionSubject,
  questionSerial,
} from '../../../schemas/signals/budget_questions.ts';
import type { UseRow } from '../../../schemas/signals/reservations.ts';
import { ApiError, STATUS_OF, type ErrorCode } from '../../http/errors.ts';
import { ITEMS_MAX, type LetInSharing } from './sharing.ts';
import { rowOf, useOf } from './use_rows.ts';

/** A request waits so long for what the org has used to be known; then it is to be sent again. */
const KNOWN_MS = 400;

/** A home that has not answered by then is taken for paused. With HOMES_MAX of them, well within the 900 ms of ingest. */
export const ANSWER_MS = 200;
export const HOMES_MAX = 2;
/** Questions without an answer; beyond it the process decides by what it knows. */
const ASKING_MAX = 10_000;

const answersShape = budgetAnswersShape(Object.keys(STATUS_OF) as [ErrorCode, ...ErrorCode[]]);
type Answer = z.infer<typeof answersShape>[number];

type Sharing = Pick<
  LetInSharing,
  'id' | 'connected' | 'homesOf' | 'silent' | 'nextId' | 'told' | 'cancelled' | 'flush' | 'hold' | 'underWay'
>;

export interface HomesDeps {
  nc: NatsConnection;
  sharing: Sharing;
  /** Whether the org's limit is known here. */
  guards: (org_id: string) => boolean;
  /** Whether what the org has used is known here. */
  isKnown: (org_id: string) => boolean;
  /** Resolves when it may be, or after `withinMs` milliseconds. */
  whenKnown: (org_id: string, withinMs: number) => Promise<void>;
  /** Whether this process may decide about the organization although it does not know what it has used. */
  mayGuess: (org_id: string) => boolean;
  /** Decides by what this process knows. @throws ApiError */
  admit: (org_id: string, uses: readonly AskedUse[]) => Reservation;
  onProblem: (problem: string, cause: unknown) => void;
}

interface Asking {
  org_id: string;
  uses: readonly AskedUse[];
  rows: UseRow[];
  /** Those still to be asked. */
  homes: string[];
  id: number;
  /** What this process let in as its own home. */
  own: Reservation | null;
  resolve: (reservation: Reservation) => void;
  reject: (error: unknown) => void;
}

interface Batch {
  home: string;
  asks: Asking[];
  timer: NodeJS.Timeout;
}

export class Homes {
  readonly #deps: HomesDeps;
  readonly #unsubscribe: (() => void)[];
  /** By home: what is asked at the end of this turn of the event loop. */
  readonly #next = new Map<string, Asking[]>();
  readonly #batches = new Map<number, Batch>();
  #serial = 0;
  #asking = 0;
  #scheduled = false;
  #closed = false;

  constructor(deps: HomesDeps) {
    this.#deps = deps;
    const { nc, sharing } = deps;
    const hear = (subject: string, take: (received: Msg) => void) => {
      const heard = nc.subscribe(subject, {
        callback: (error, received) => {
          if (error === null) take(received);
        },
      });
      return () => {
        heard.unsubscribe();
      };
    };
    this.#unsubscribe = [
      hear(budgetQuestionSubject(sharing.id), (received) => {
        this.#asked(received);
      }),
      hear(budgetAnswerSubject(sharing.id, '*'), (received) => {
        this.#answered(received);
      }),
    ];
  }

  /**
   * Lets uses in near a limit, or where this process does not know what the org has used; or refuses them. Answers at once where there
   * is nobody else.
   * @throws ApiError (or rejects with it) rate_limited, payment_required; upstream_unavailable where nobody knows yet
   */
  decide(org_id: string, uses: readonly AskedUse[]): Reservation | Promise<Reservation> {
    const { sharing } = this.#deps;
    const homes = sharing.homesOf(org_id).slice(0, HOMES_MAX);
    const alone = homes.every((home) => home === sharing.id);
    if (alone || !sharing.connected || this.#closed || this.#asking >= ASKING_MAX)
      return this.#decideAlone(org_id, uses);
    this.#asking++;
    sharing.underWay(org_id, uses, 1);
    return new Promise<Reservation>((resolve, reject) => {
      this.#ask({ org_id, uses, rows: uses.map(rowOf), homes, id: 0, own: null, resolve, reject });
    }).finally(() => {
      this.#asking--;
      sharing.underWay(org_id, uses, -1);
    });
  }

  /** Nobody waits for an answer any more: what is open is decided here. */
  close(): void {
    this.#closed = true;
    this.#sendAll();
    for (const [serial, { asks }] of this.#batches) this.#end(serial, () => asks.map(() => 'unknown'));
    if (!this.#deps.nc.isClosed()) for (const stop of this.#unsubscribe) stop();
  }

  #decideAlone(org_id: string, uses: readonly AskedUse[]): Reservation | Promise<Reservation> {
    const { sharing, admit, isKnown, mayGuess } = this.#deps;
    if (!isKnown(org_id) && !mayGuess(org_id)) return this.#decideWhenKnown(org_id, uses);
    return sharing.told(org_id, admit(org_id, uses));
  }

  /** A process that has just begun, and nobody who knows more: what is refused here is sent again a moment later, and nothing is lost. */
  async #decideWhenKnown(org_id: string, uses: readonly AskedUse[]): Promise<Reservation> {
    const { sharing, admit, isKnown, whenKnown } = this.#deps;
    if (!this.#closed && this.#asking < ASKING_MAX) {
      this.#asking++;
      await whenKnown(org_id, KNOWN_MS).finally(() => {
        this.#asking--;
      });
    }
    if (!isKnown(org_id)) throw notKnown();
    return sharing.told(org_id, admit(org_id, uses));
  }

  #ask(asking: Asking): void {
    const home = asking.homes.shift();
    if (home === undefined || this.#closed) {
      try {
        const decided = this.#decideAlone(asking.org_id, asking.uses);
        if (decided instanceof Promise) decided.then(asking.resolve, asking.reject);
        else asking.resolve(decided);
      } catch (error) {
        asking.reject(error);
      }
      return;
    }
    asking.id = this.#deps.sharing.nextId();
    const asks = this.#next.get(home) ?? [];
    this.#next.set(home, asks);
    asks.push(asking);
    if (this.#scheduled) return;
    this.#scheduled = true;
    setImmediate(() => {
      this.#scheduled = false;
      this.#sendAll();
    });
  }

  #sendAll(): void {
    for (const [home, asks] of this.#next) {
      let rows = 0;
      let batch: Asking[] = [];
      for (const asking of asks) {
        if (rows + asking.rows.length > ITEMS_MAX && batch.length > 0) {
          this.#send(home, batch);
          [rows, batch] = [0, []];
        }
        batch.push(asking);
        rows += asking.rows.length;
      }
      this.#send(home, batch);
    }
    this.#next.clear();
  }

  #send(home: string, asks: Asking[]): void {
    const { nc, sharing, isKnown } = this.#deps;
    const serial = ++this.#serial;
    const timer = setTimeout(() => {
      sharing.silent(home);
      this.#end(serial, () => asks.map(() => 'unknown'));
    }, ANSWER_MS);
    this.#batches.set(serial, { home, asks, timer });
    if (nc.isClosed()) return;
    // What was let in here comes before what depends on it.
    sharing.flush();
    const text = JSON.stringify({
      asker: sharing.id,
      asks: asks.map(({ id, org_id, rows }) => [id, org_id, isKnown(org_id), rows]),
    });
    nc.publish(budgetQuestionSubject(home), text, { reply: budgetAnswerSubject(sharing.id, serial) });
  }

  /** Decides for a process, which may be this one. */
  #asked(received: Msg): void {
    const { nc, sharing, onProblem } = this.#deps;
    let asked: BudgetQuestion;
    try {
      asked = budgetQuestionShape.parse(JSON.parse(received.string()));
    } catch (cause) {
      onProblem('a question whether to let something in is not what it should be', cause);
      return;
    }
    const reply = received.reply ?? '';
    if (asked.asker === sharing.id) {
      this.#end(questionSerial(reply), (batch) => batch.map((asking) => this.#decideOwn(asking)));
    } else {
      const answers = asked.asks.map(([id, org_id, known, rows]) =>
        this.#canDecide(org_id, known) ? this.#decideFor(asked.asker, id, org_id, rows) : 'unknown',
      );
      if (!nc.isClosed()) nc.publish(reply, JSON.stringify(answers));
    }
  }

  /** Who may guess decides for those who do not know what the org has used either: they all hear of what is let in. */
  #canDecide(org_id: string, askerKnows: boolean): boolean {
    const { guards, isKnown, mayGuess } = this.#deps;
    return guards(org_id) && (isKnown(org_id) || (!askerKnows && mayGuess(org_id)));
  }

  #decideFor(asker: string, id: number, org_id: string, rows: readonly UseRow[]): Answer {
    const { sharing, admit } = this.#deps;
    try {
      const reservation = admit(org_id, rows.map(useOf));
      if (sharing.hold(asker, id, reservation)) return 'admitted';
      reservation.cancel();
      return 'unknown';
    } catch (error) {
      return refusalOf(error);
    }
  }

  #decideOwn(asking: Asking): Answer {
    const { isKnown, mayGuess } = this.#deps;
    if (!isKnown(asking.org_id) && !mayGuess(asking.org_id)) return 'unknown';
    try {
      asking.own = this.#deps.admit(asking.org_id, asking.uses);
      return 'admitted';
    } catch (error) {
      return refusalOf(error);
    }
  }

  #answered(received: Msg): void {
    const { sharing, onProblem } = this.#deps;
    const serial = questionSerial(received.subject);
    this.#end(serial, ({ length }, home) => {
      const unknown = (): Answer[] => Array.from({ length }, () => 'unknown');
      // The server says that nobody hears the question.
      if (received.headers?.code === 503) {
        sharing.silent(home);
        return unknown();
      }
      try {
        return answersShape.parse(JSON.parse(received.string()));
      } catch (cause) {
        onProblem('an answer whether to let something in is not what it should be', cause);
        return unknown();
      }
    });
  }

  /** Answers to a batch are in, in its order; one that has ended already is not waited for. */
  #end(serial: number, answersOf: (asks: Asking[], home: string) => Answer[]): void {
    const batch = this.#batches.get(serial);
    if (batch === undefined) return;
    this.#batches.delete(serial);
    clearTimeout(batch.timer);
    const answers = answersOf(batch.asks, batch.home);
    for (const [index, asking] of batch.asks.entries()) this.#take(asking, answers[index] ?? 'unknown');
    // Whatever is stored now, the others know of it before: also when this process dies with the next instruction.
    this.#deps.sharing.flush();
  }

  #take(asking: Asking, given: Answer): void {
    const { sharing, admit } = this.#deps;
    const { org_id, uses, id, own } = asking;
    if (given === 'unknown') {
      // It may have been let in by a home that answers too late.
      sharing.cancelled(id);
      this.#ask(asking);
    } else if (given !== 'admitted') {
      asking.reject(new ApiError(given.code, given.detail, { headers: given.headers }));
    } else {
      try {
        asking.resolve(sharing.told(org_id, own ?? admit(org_id, uses), id));
      } catch (error) {
        // It knows of use that the home has not heard of.
        sharing.cancelled(id);
        asking.reject(error);
      }
    }
  }
}

const notKnown = (): ApiError =>
  new ApiError(
    'upstream_unavailable',
    'What the org has used before the service started is not known yet. Send it again.',
    {
      headers: { 'Retry-After': '1' },
    },
  );

function refusalOf(error: unknown): Answer {
  if (!(error instanceof ApiError)) return 'unknown';
  return { code: error.code, detail: error.detail, headers: { ...error.headers } };
}
