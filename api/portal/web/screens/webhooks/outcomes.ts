// The outcomes of attempts and the reasons of dead letters in words. Pure.
import type { Attempt, DeadLetter } from './webhook_data.ts';

export const OUTCOME_WORDS: Readonly<Record<Attempt['outcome'], string>> = {
  delivered: 'Delivered',
  failed: 'Refused',
  retrying: 'Will be retried',
  'dead-lettered': 'Given up',
};
export const OUTCOME_TONES: Readonly<Record<Attempt['outcome'], 'ok' | 'error' | 'warn'>> = {
  delivered: 'ok',
  failed: 'error',
  retrying: 'warn',
  'dead-lettered': 'error',
};
export const REASON_WORDS: Readonly<Record<DeadLetter['reason'], string>> = {
  expired: 'Every attempt of 24 hours failed',
  backlog: 'Too many deliveries waited for the endpoint',
  too_large: 'The event is too large to send',
};

/** Returns the last answer of a receiver in words. */
export function answerWords({ status_code, error }: Pick<Attempt, 'status_code' | 'error'>): string {
  if (status_code !== null) return `Status ${status_code}`;
  return error ?? 'No answer';
}
