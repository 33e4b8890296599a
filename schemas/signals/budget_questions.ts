// Questions near a hard limit: an API process asks the decider of the organization whether it may
// admit uses, and the decider answers on the subject that the question names.
import { z } from 'zod';
import { useRow } from './reservations.ts';

/** Subject of the questions to one process. */
export const budgetQuestionSubject = (decider: string): string => `usage.ask.${decider}`;
/** Subject of the answer to one question of a process; `*` for the answers to all of them. */
export const budgetAnswerSubject = (asker: string, serial: number | '*'): string => `usage.answer.${asker}.${serial}`;
/** Returns the serial number of the question from the subject of its answer. */
export const questionSerial = (subject: string): number => Number(subject.slice(subject.lastIndexOf('.') + 1));

export const budgetQuestionShape = z.object({
  asker: z.string(),
  /** For each: number, organization, true when the asker knows the organization's use, uses. */
  asks: z.array(z.tuple([z.number(), z.string(), z.boolean(), z.array(useRow)])),
});
export type BudgetQuestion = z.infer<typeof budgetQuestionShape>;

/**
 * Returns the shape of the answers, in the order of the questions. `unknown` means that the decider
 * cannot say.
 * @param codes the error codes of the API, one of which a rejection carries
 */
export const budgetAnswersShape = <Code extends string>(codes: readonly [Code, ...Code[]]) =>
  z.array(
    z.union([
      z.literal('admitted'),
      z.literal('unknown'),
      z.object({ code: z.enum(codes), detail: z.string(), headers: z.record(z.string(), z.string()) }),
    ]),
  );
