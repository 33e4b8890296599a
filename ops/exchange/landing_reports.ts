// Reports of landings, from the workers to the processes that keep accounts or measure the backlog,
// as plain NATS messages. They are not stored: a process reads from the store what it missed, and
// only the checkpoint is decisive. A report says how far a partition has landed, and what the
// landing wrote for organizations with a budget.
import type { NatsConnection } from '@nats-io/transport-node';
import type { ReportProblem } from '../platform/report_problem.ts';
import { type LandingReport, LANDINGS_SUBJECT, landingsShape } from '../../schemas/signals/landing_reports.ts';
import { MESSAGE_BYTES_MAX } from '../../schemas/streams.ts';

/** Maximum rows and bytes of one message; a landing with more sends several. */
const ROWS_MAX = 2000;
const BYTES_MAX = 1024 * 1024;
/** Bytes of a list besides its items. */
const FRAME_BYTES = 16;

/**
 * Publishes reports of landings. Nothing waits for them; without a connection they are lost, and
 * their readers read the store instead. The same holds for the rows of a report that exceeds the
 * maximum message size: the report is sent without them.
 */
export function reportLanded(nc: NatsConnection, reports: readonly LandingReport[]): void {
  const largest = Math.min(MESSAGE_BYTES_MAX, nc.info?.max_payload ?? MESSAGE_BYTES_MAX);
  let texts: string[] = [];
  let [rows, bytes] = [0, 0];
  const send = () => {
    if (texts.length > 0) nc.publish(LANDINGS_SUBJECT, `[${texts.join(',')}]`);
    texts = [];
    [rows, bytes] = [0, 0];
  };
  for (const one of reports) {
    // The rows of one log position stay together, because the position identifies them.
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

const textOf = (report: LandingReport): string =>
  JSON.stringify(report, (_key, value: unknown) => (typeof value === 'bigint' ? String(value) : value));

/** Calls back with reports of landings. @returns a function that stops it */
export function followLandingReports(
  nc: NatsConnection,
  take: (reports: readonly LandingReport[]) => void,
  onProblem: ReportProblem,
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
