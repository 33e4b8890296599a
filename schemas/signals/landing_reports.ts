// Reports of landings, from workers to the processes that keep accounts of usage or measure the
// backlog. They are not stored: a process that missed one reads the store, and every binding
// decision rests on the checkpoint.
import { z } from 'zod';

export const LANDINGS_SUBJECT = 'workers.landings';

const count = z.number();
const row = z.object({
  org_id: z.string(),
  agent_id: z.string(),
  /** API key that sent the events; empty for none, and from older workers. */
  key_id: z.string().default(''),
  /** Start of the hour of receipt, milliseconds since the epoch. */
  hour: count,
  tokens: count,
  storage_bytes: count,
  sandbox_micros: count,
  cost_pico_usd: z.string().transform(BigInt),
});
const report = z.object({
  partition: z.int(),
  /** Epoch of the ownership under which the rows landed. */
  epoch: count,
  /** Position in the log up to which the partition has landed. */
  landed_through: count,
  /**
   * Position up to which the log was read and everything of the partition landed; 0 from older
   * workers.
   */
  read_through: count.default(0),
  /**
   * True when the log holds events of the partition that have not landed, as far as its owner can
   * tell.
   */
  behind: z.boolean().default(true),
  /** `log_seq` of the report before this one. */
  after: count,
  /** Position at which the rows stand in the store. */
  log_seq: count,
  rows: z.array(row),
});
export const landingsShape = z.array(report);

/** A landing in one partition, with the rows of the organizations that have a budget. */
export type LandingReport = z.output<typeof report>;
