// Decisions near a hard limit: one process, the organization's decider, decides for all. The
// decider is the first in the order in which every process ranks the live ones. Takes the use of a
// request near a limit; returns a reservation, or the decider's rejection.
//
// Why it is exact: a process announces what it has admitted before it asks, over the same
// connection, and the NATS server keeps that order. A decider that reads a question has therefore
// read what the question depends on, however late it reads it; its own questions take the same way.
// It decides and reserves in one turn of its event loop. The asking process takes the answer in the
// turn in which it arrives, rejects the use where it knows of more use than the decider did, and
// announces what it admits before anything is stored.
//
// A dead decider is known at once (NATS reports that nobody subscribes), a paused one after
// ANSWER_MS. Then the process asks the next one; after DECIDERS_MAX it decides by what it knows
// itself. No request is rejected for lack of an answer.
import type { Msg, NatsConnection } from '@nats-io/transport-node';
import type { z } from 'zod';
import type { ReportProblem } from '../../../ops/platform/report_problem.ts';
import type { AskedUse, Reservation as UseReservation } from '../../../pipeline/domain/budgets/usage_ledger.ts';
import {
  budgetAnswersShape,
  budgetAnswerSubject,
  type BudgetQuestion,
  budgetQuestionShape,
  budgetQuestionSubject,
  questionSerial,
} from '../../../schemas/signals/budget_questions.ts';
import type { UseRow } from '../../../schemas/signals/reservations.ts';
import { STATUS_OF, type ErrorCode } from '../../http/errors.ts';
import { errorOf, type Reject, reject } from '../decision.ts';
import type { BudgetDecision } from './gate.ts';
import { ITEMS_MAX, type ReservationSharing } from './sharing.ts';
import { rowOf, useOf } from './use_rows.ts';

/**
 * Maximum time that a request waits until the organization's use is known; then it is rejected and
 * has to be retried.
 */
const KNOWN_MS = 400;

/**
 * A decider that has not answered after this long is considered paused. DECIDERS_MAX times this is
 * well within the 900 ms of ingest.
 */
export const ANSWER_MS = 200;
export const DECIDERS_MAX = 2;
/** Maximum number of open questions; beyond it the process decides by what it knows. */
const ASKING_MAX = 10_000;

const answersShape = budgetAnswersShape(Object.keys(STATUS_OF) as [ErrorCode, ...ErrorCode[]]);
type Answer = z.infer<typeof answersShape>[number];

type Sharing = Pick<
  ReservationSharing,
  | 'id'
  | 'connected'
  | 'decidersOf'
  | 'silent'
  | 'nextId'
  | 'announce'
  | 'announceCancelled'
  | 'flush'
  | 'keep'
  | 'countInProgress'
>;

export interface BudgetDecidersDeps {
  nc: NatsConnection;
  sharing: Sharing;
  /** Returns true if this process knows a hard limit of the organization. */
  guards: (org_id: string) => boolean;
  /** Returns true once this process knows what the organization has used. */
  isKnown: (org_id: string) => boolean;
  /** Resolves when this process may know it, or after `withinMs` milliseconds. */
  whenKnown: (org_id: string, withinMs: number) => Promise<void>;
  /**
   * Returns true if this process may decide about the organization without knowing what it has
   * used.
   */
  mayGuess: (org_id: string) => boolean;
  /** Decides by what this process knows, and reserves what it admits. */
  admit: (org_id: string, uses: readonly AskedUse[]) => BudgetDecision;
  /** Called with the number of questions that a decider did not answer within ANSWER_MS. */
  onLate: (questions: number) => void;
  onProblem: ReportProblem;
}

interface Asking {
  org_id: string;
  uses: readonly AskedUse[];
  rows: UseRow[];
  /** Ids of the processes still to be asked. */
  deciders: string[];
  id: number;
  /** Reservation that this process has made as its own decider. */
  own: UseReservation | null;
  resolve: (decision: BudgetDecision) => void;
  reject: (error: unknown) => void;
}

interface Batch {
  decider: string;
  asks: Asking[];
  timer: NodeJS.Timeout;
}

export class BudgetDeciders {
  readonly #deps: BudgetDecidersDeps;
  readonly #unsubscribe: (() => void)[];
  /** Questions to be sent at the end of this turn of the event loop, by decider. */
  readonly #next = new Map<string, Asking[]>();
  readonly #batches = new Map<number, Batch>();
  #serial = 0;
  #asking = 0;
  #scheduled = false;
  #closed = false;

  constructor(deps: BudgetDecidersDeps) {
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
   * Decides about uses near a limit, or where this process does not know what the organization has
   * used. Returns at once where there is no other process; rejects with upstream_unavailable where
   * no process knows the use yet.
   */
  decide(org_id: string, uses: readonly AskedUse[]): BudgetDecision | Promise<BudgetDecision> {
    const { sharing } = this.#deps;
    const deciders = sharing.decidersOf(org_id).slice(0, DECIDERS_MAX);
    const alone = deciders.every((decider) => decider === sharing.id);
    if (alone || !sharing.connected || this.#closed || this.#asking >= ASKING_MAX)
      return this.#decideAlone(org_id, uses);
    this.#asking++;
    sharing.countInProgress(org_id, uses, 1);
    return new Promise<BudgetDecision>((resolve, reject) => {
      this.#ask({ org_id, uses, rows: uses.map(rowOf), deciders, id: 0, own: null, resolve, reject });
    }).finally(() => {
      this.#asking--;
      sharing.countInProgress(org_id, uses, -1);
    });
  }

  /** Decides the open questions by what this process knows. */
  close(): void {
    this.#closed = true;
    this.#sendAll();
    for (const [serial, { asks }] of this.#batches) this.#end(serial, () => asks.map(() => 'unknown'));
    if (!this.#deps.nc.isClosed()) for (const stop of this.#unsubscribe) stop();
  }

  #decideAlone(org_id: string, uses: readonly AskedUse[]): BudgetDecision | Promise<BudgetDecision> {
    const { isKnown, mayGuess } = this.#deps;
    if (!isKnown(org_id) && !mayGuess(org_id)) return this.#decideWhenKnown(org_id, uses);
    return this.#admit(org_id, uses);
  }

  /**
   * Waits for a process that has just started to know the use, where no other process knows more. A
   * client whose request is rejected retries a moment later, and nothing is lost.
   */
  async #decideWhenKnown(org_id: string, uses: readonly AskedUse[]): Promise<BudgetDecision> {
    const { isKnown, whenKnown } = this.#deps;
    if (!this.#closed && this.#asking < ASKING_MAX) {
      this.#asking++;
      await whenKnown(org_id, KNOWN_MS).finally(() => {
        this.#asking--;
      });
    }
    return isKnown(org_id) ? this.#admit(org_id, uses) : NOT_KNOWN;
  }

  /** Decides by what this process knows, and announces what it admits. */
  #admit(org_id: string, uses: readonly AskedUse[]): BudgetDecision {
    const { sharing, admit } = this.#deps;
    const decision = admit(org_id, uses);
    return decision.kind === 'reject' ? decision : { kind: 'admit', use: sharing.announce(org_id, decision.use) };
  }

  #ask(asking: Asking): void {
    const decider = asking.deciders.shift();
    if (decider === undefined || this.#closed) {
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
    const asks = this.#next.get(decider) ?? [];
    this.#next.set(decider, asks);
    asks.push(asking);
    if (this.#scheduled) return;
    this.#scheduled = true;
    setImmediate(() => {
      this.#scheduled = false;
      this.#sendAll();
    });
  }

  #sendAll(): void {
    for (const [decider, asks] of this.#next) {
      let rows = 0;
      let batch: Asking[] = [];
      for (const asking of asks) {
        if (rows + asking.rows.length > ITEMS_MAX && batch.length > 0) {
          this.#send(decider, batch);
          [rows, batch] = [0, []];
        }
        batch.push(asking);
        rows += asking.rows.length;
      }
      this.#send(decider, batch);
    }
    this.#next.clear();
  }

  #send(decider: string, asks: Asking[]): void {
    const { nc, sharing, isKnown, onLate } = this.#deps;
    const serial = ++this.#serial;
    const timer = setTimeout(() => {
      sharing.silent(decider);
      onLate(asks.length);
      this.#end(serial, () => asks.map(() => 'unknown'));
    }, ANSWER_MS);
    this.#batches.set(serial, { decider, asks, timer });
    if (nc.isClosed()) return;
    // Announces what this process has admitted before the questions that depend on it.
    sharing.flush();
    const text = JSON.stringify({
      asker: sharing.id,
      asks: asks.map(({ id, org_id, rows }) => [id, org_id, isKnown(org_id), rows]),
    });
    nc.publish(budgetQuestionSubject(decider), text, { reply: budgetAnswerSubject(sharing.id, serial) });
  }

  /** Answers questions of a process, which may be this one. */
  #asked(received: Msg): void {
    const { nc, sharing, onProblem } = this.#deps;
    let asked: BudgetQuestion;
    try {
      asked = budgetQuestionShape.parse(JSON.parse(received.string()));
    } catch (cause) {
      onProblem('a question to this decider cannot be parsed', cause);
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

  /**
   * A process that may decide without knowing the use also decides for processes that do not know
   * it either: they all hear of what it admits.
   */
  #canDecide(org_id: string, askerKnows: boolean): boolean {
    const { guards, isKnown, mayGuess } = this.#deps;
    return guards(org_id) && (isKnown(org_id) || (!askerKnows && mayGuess(org_id)));
  }

  #decideFor(asker: string, id: number, org_id: string, rows: readonly UseRow[]): Answer {
    const { sharing, admit } = this.#deps;
    try {
      const decision = admit(org_id, rows.map(useOf));
      if (decision.kind === 'reject') return rejectionOf(decision);
      if (sharing.keep(asker, id, decision.use)) return 'admitted';
      decision.use.cancel();
      return 'unknown';
    } catch {
      return 'unknown';
    }
  }

  #decideOwn(asking: Asking): Answer {
    const { isKnown, mayGuess } = this.#deps;
    if (!isKnown(asking.org_id) && !mayGuess(asking.org_id)) return 'unknown';
    try {
      const decision = this.#deps.admit(asking.org_id, asking.uses);
      if (decision.kind === 'reject') return rejectionOf(decision);
      asking.own = decision.use;
      return 'admitted';
    } catch {
      return 'unknown';
    }
  }

  #answered(received: Msg): void {
    const { sharing, onProblem } = this.#deps;
    const serial = questionSerial(received.subject);
    this.#end(serial, ({ length }, decider) => {
      const unknown = (): Answer[] => Array.from({ length }, () => 'unknown');
      // The server reports that nobody subscribes to the subject.
      if (received.headers?.code === 503) {
        sharing.silent(decider);
        return unknown();
      }
      try {
        return answersShape.parse(JSON.parse(received.string()));
      } catch (cause) {
        onProblem('an answer of a decider cannot be parsed', cause);
        return unknown();
      }
    });
  }

  /** Takes the answers to a batch, in its order; none for a batch that has ended. */
  #end(serial: number, answersOf: (asks: Asking[], decider: string) => Answer[]): void {
    const batch = this.#batches.get(serial);
    if (batch === undefined) return;
    this.#batches.delete(serial);
    clearTimeout(batch.timer);
    const answers = answersOf(batch.asks, batch.decider);
    for (const [index, asking] of batch.asks.entries()) this.#take(asking, answers[index] ?? 'unknown');
    // The others know of what is about to be stored, even if this process dies at the next
    // instruction.
    this.#deps.sharing.flush();
  }

  #take(asking: Asking, given: Answer): void {
    const { sharing, admit } = this.#deps;
    const { org_id, uses, id, own } = asking;
    if (given === 'unknown') {
      // A decider that answers too late may have reserved it.
      sharing.announceCancelled(id);
      this.#ask(asking);
    } else if (given !== 'admitted') {
      const { 'Retry-After': retry_after, ...headers } = given.headers;
      asking.resolve(
        reject(given.code, given.detail, retry_after === undefined ? null : Number(retry_after), { headers }),
      );
    } else {
      try {
        const decision: BudgetDecision = own === null ? admit(org_id, uses) : { kind: 'admit', use: own };
        if (decision.kind === 'reject') {
          // This process knows of use that the decider has not heard of.
          sharing.announceCancelled(id);
          asking.resolve(decision);
        } else asking.resolve({ kind: 'admit', use: sharing.announce(org_id, decision.use, id) });
      } catch (error) {
        sharing.announceCancelled(id);
        asking.reject(error);
      }
    }
  }
}

const NOT_KNOWN = reject(
  'upstream_unavailable',
  'The service has just started and does not know yet what this organization has used. Retry after the number of seconds in Retry-After.',
  1,
);

function rejectionOf(decision: Reject): Answer {
  const { code, detail, headers } = errorOf(decision);
  return { code, detail, headers: { ...headers } };
}
