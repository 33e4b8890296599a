// The answer of a guarded call, once it has arrived as a whole. Takes its bytes; returns those for the
// caller, with matches redacted, or the error that takes their place. An answer that cannot be read
// is withheld. Errors of the upstream pass.
import type { JudgeRecord } from '../../../schemas/records/judge.ts';
import { ApiError } from '../../http/errors.ts';
import type { AnswerHead, AnswerReader, ReadAnswer } from './answer.ts';
import { applyGuards, blockedBy } from './guards.ts';

export class GuardedAnswer {
  readonly #guards: readonly JudgeRecord[];
  readonly #head: AnswerHead;
  readonly #reader: AnswerReader;
  #read: ReadAnswer | null = null;
  /** The error for the caller of an answer that is withheld. */
  error: ApiError | null = null;

  constructor(guards: readonly JudgeRecord[], head: AnswerHead, reader: AnswerReader) {
    this.#guards = guards;
    this.#head = head;
    this.#reader = reader;
  }

  /** Returns what is recorded of the answer; null where guards have not decided on it. */
  read(): ReadAnswer | null {
    return this.#read;
  }

  /**
   * Decides on an answer.
   * @param whole null for an answer that is too long to be held
   * @returns the bytes for the caller; null where they are withheld
   */
  decide(whole: Buffer | null): Buffer | null {
    const read = this.#reader.read('complete');
    this.#read = read;
    const { isStream, isPlain, status } = this.#head;
    if (whole === null || !isPlain) return this.#withhold(read, unreadable());
    if (status >= 400 || read.response === null) return whole;
    const sent = isStream ? JSON.stringify(read.response) : whole.toString('utf8');
    const { text, notes, blocked } = applyGuards(this.#guards, 'response', sent, !isStream);
    if (notes.length > 0) read.attributes['guards'] = notes;
    if (blocked !== null) return this.#withhold(read, blockedBy(blocked));
    if (text === sent) return whole;
    read.response = JSON.parse(text) as unknown;
    return Buffer.from(text, 'utf8');
  }

  #withhold(read: ReadAnswer, error: ApiError): null {
    this.error = error;
    read.outcome = 'error';
    read.attributes['error_message'] = error.detail;
    return null;
  }
}

const unreadable = (): ApiError =>
  new ApiError('forbidden', 'The answer is compressed or too long, so that no judge can check it.');
