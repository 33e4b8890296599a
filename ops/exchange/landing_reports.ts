// Reports of landings, from the workers to whoever keeps accounts or counts what waits in the log, as plain NATS messages: not stored, as
// what was missed is read from the store, and what decides anything for good is the checkpoint. In: how far each partition is, and what a
// landing wrote for orgs with a budget.
import type { NatsConnection } from '@nats-io/transport-node';
import { z } from 'zod';
import type { ReportProblem } from '../platform/report_problem.ts';
import { MESSAGE_BYTES_MAX } from '../../schemas/streams.ts';

const SUBJECT = 'workers.landings';
/** Rows of one message and its bytes; a landing with more sends several. */
const ROWS_MAX = 2000;
const BYTES_MAX = 1024 * 1024;
/** What a list takes beside its items. */
const FRAME_BYTES = 16;

const count = z.number();
const row = z.object({
  org_id: z.string(),
  agent_id: z.string(),
  /** Start of the hour of receipt, milliseconds. */
  hour: count,
  tokens: count,
  storage_bytes: count,
  sandbox_micros: count,
  cost_pico_usd: z.string().transform(BigInt),
});
const report = z.object({
  partition: z.int(),
  /** Of the ownership under which it landed. */
  epoch: count,
  /** JetStream sequence up to which the partition has landed. */
  landed_through: count,
  /** JetStream sequence up to which the log was read for the partition, and all that was its has landed; 0 from who does not say. */
  read_through: count.default(0),
  /** Whether the log holds anything of the partition that has not landed, as far as its owner can tell. */
  behind: z.boolean().default(true),
  /** Place of the rows of the report before this one. */
  after: count,
  /** Place of the rows in the store. */
  log_seq: count,
  rows: z.array(row),
});
const message = z.array(report);

/** A landing in one partition, with the rows of the orgs that have a budget. */
export type Landing = z.output<typeof report>;

/**
 * Tells of landings. Nothing waits for it; without a connection it is lost, and read from the store by those who missed it. So are the rows of a
 * report that no message holds: it is told without them, as after one that was lost.
 */
export function tellLanded(nc: NatsConnection, reports: readonly Landing[]): void {
  const largest = Math.min(MESSAGE_BYTES_MAX, nc.info?.max_payload ?? MESSAGE_BYTES_MAX);
  let texts: string[] = [];
  let [rows, bytes] = [0, 0];
  const send = () => {
    if (texts.length > 0) nc.publish(SUBJECT, `[${texts.join(',')}]`);
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
  onProblem: ReportProblem,
): () => void {
  const subscription = nc.subscribe(SUBJECT, {
    callback: (error, msg) => {
      if (error !== null) return;
      try {
        take(message.parse(JSON.parse(msg.string())));
      } catch (cause) {
        onProblem('a report of a landing is not what it should be', cause);
      }
    },
  });
  return () => {
    subscription.unsubscribe();
  };
}
