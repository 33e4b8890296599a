// Scores that steps give: sent in the background by the client of init, or kept until it exists.
import type { MillraceClient, ScoreInput } from './client.ts';

/** Scores that wait for a client or an answer; more are refused. */
const WAITING_MAX = 1000;

type Scored = ScoreInput & { traceId: string };

let client: MillraceClient | null = null;
let onFailure: (error: unknown) => void = () => {};
let early: Scored[] = [];
const inFlight = new Set<Promise<void>>();

/** Sets the client that sends scores, and sends those that steps gave before. */
export function sendScoresWith(sender: MillraceClient | null, onError: (error: unknown) => void): void {
  [client, onFailure] = [sender, onError];
  const waiting = early;
  early = [];
  if (sender !== null) for (const score of waiting) queueScore(score);
}

/** Sends a score in the background. */
export function queueScore(score: Scored): void {
  if (inFlight.size + early.length >= WAITING_MAX) {
    onFailure(new Error(`score ${score.name} was dropped: ${WAITING_MAX} scores wait already`));
    return;
  }
  if (client === null) {
    early.push(score);
    return;
  }
  const sent = client.score(score, { isBackground: true }).then(
    () => undefined,
    (error: unknown) => {
      onFailure(error);
    },
  );
  inFlight.add(sent);
  void sent.finally(() => inFlight.delete(sent));
}

/** Resolves when the scores so far were answered. */
export const scoresSent = async (): Promise<void> => {
  await Promise.all(inFlight);
};
