// Reports of landings, from the workers to whoever keeps accounts or counts what waits in the log, as plain NATS messages: not stored, as
// what was missed is read from the store, and what decides anything for good is the checkpoint. In: how far each partition is, and what a
// landing wrote for orgs with a budget.
import type { NatsConnection } from '@nats-io/transport-node';
import { type Landing, LANDINGS_SUBJECT, landingsShape } from '../../schemas/signals/landing_reports.ts';
import { MESSAGE_BYTES_MAX } from '../../schemas/streams.ts';

/** Rows of one message and its bytes; a landing with more sends several. */
const ROWS_MAX = 2000;
const BYTES_MAX = 1024 * 1024;
/** What a list takes beside its items. */
const FRAME_BYTES = 16;

/**
 * Tells of landings. Nothing waits for it; without a connection it is lost, and read from the store by those who missed it. So are the rows of a
 * report that no message holds: it is told without them, as after one that was lost.
 */
export function tellLanded(nc: NatsConnection, reports: readonly Landing[]): void {
  const largest = Math.min(MESSAGE_BYTES_MAX, nc.info?.max_payload ?? MESSAGE_BYTES_MAX);
  let texts: string[] = [];
  let [rows, bytes] = [0, 0];
  const send = () => {
    if (texts.length > 0) nc.publish(LANDINGS_SUBJECT, `[${texts.join(',')}]`);
    texts = [];
    [rows, bytes] = [0, 0];
  };
  for (const one of reports) {
    // The rows of one place in the log stay together: they are recognised by it.
    const whole = textOf(one);
    const fits = Buffer.byteLength(whole) + FRAME_BYTES <= largest;
    const text = fits ? whole : textOf({ ...one, after: one.log_seq, log_seq: 0, rows: [] });
    const size = Buffer.byteLength(text) + 1;
    if (
      texts.length > 0 &&
      (rows + one.rows.length > ROWS_MAX || bytes + size > Math.min(BYTES_MAX, largest - FRAME_BYTES))
    )
      send();
    texts.push(text);
    rows += one.rows.length;
    bytes += size;
  }
  send();
}

const textOf = (report: Landing): string =>
  JSON.stringify(report, (_key, value: unknown) => (typeof value === 'bigint' ? String(value) : value));

/** Hears of landings until it is stopped. */
export function hearLanded(
  nc: NatsConnection,
  take: (reports: readonly Landing[]) => void,
  onProblem: (problem: string, cause: unknown) => void,
): () => void {
  const subscription = nc.subscribe(LANDINGS_SUBJECT, {
    callback: (error, msg) => {
      if (error !== null) return;
      try {
        take(landingsShape.parse(JSON.parse(msg.string())));
      } catch (cause) {
        onProblem('a report of a landing is not what it should be', cause);
      }
    },
  });
  return () => {
    subscription.unsubscribe();
  };
}
