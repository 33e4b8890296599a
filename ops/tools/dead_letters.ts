// Operator command for dead letters: lists and shows them with their reasons, replays them through
// the ingest log, and deletes them.
//   npm run dead-letters -- list [--limit N]
//   npm run dead-letters -- show SEQ
//   npm run dead-letters -- replay SEQ|all
//   npm run dead-letters -- delete SEQ | delete --org ORG_ID
//   npm run dead-letters -- resend LOG_SEQ LOG_INDEX
// A replayed event enters the ingest log unchanged; its id is the same, so it lands once. The
// letter is removed only after the log has stored the event. A letter that was written while disk
// space was low contains only a part of its event, or none of it; the command then reads the event
// from its position in the ingest log, as long as the log keeps landed messages. `resend` does the
// same for an event whose letter could not be stored at all; the worker's logger printed its
// position.
import { parseArgs } from 'node:util';
import {
  deleteLetter,
  eventAt,
  isReplayable,
  nextLetter,
  NotReplayable,
  readLetter,
  replayLetter,
  sendEvent,
  type StoredLetter,
} from '../exchange/dead_letters.ts';
import { connectNats } from '../platform/nats/connect.ts';
import { localNatsUrl } from '../launch/secrets.ts';
import { attachLog, type Log } from '../platform/nats/open_log.ts';
import { leave } from '../platform/leave.ts';
import { DEAD_LETTERS_STREAM } from '../../schemas/streams.ts';
import { parseEnv } from '../platform/env.ts';

const USAGE =
  'usage: npm run dead-letters -- list [--limit N] | show SEQ | replay SEQ|all | delete SEQ | delete --org ORG_ID | resend LOG_SEQ LOG_INDEX';
const LIST_LIMIT = 100;

async function letterAt(log: Log, seq: number): Promise<StoredLetter> {
  const letter = await readLetter(log, seq);
  if (letter === null) throw new Error(`no dead letter ${seq}`);
  return letter;
}

async function* letters(log: Log): AsyncGenerator<StoredLetter> {
  // An event that dies again gets a new letter, which this run must not replay.
  const { state } = await log.jsm.streams.info(DEAD_LETTERS_STREAM);
  let letter = await nextLetter(log, 1);
  while (letter !== null && letter.seq <= state.last_seq) {
    yield letter;
    letter = await nextLetter(log, letter.seq + 1);
  }
}

async function list(log: Log, limit: number): Promise<void> {
  let shown = 0;
  for await (const { seq, letter } of letters(log)) {
    if (shown >= limit) {
      process.stdout.write(`… more; --limit ${limit * 2} shows them\n`);
      return;
    }
    shown += 1;
    process.stdout.write(
      `${String(seq).padStart(6)}  ${new Date(letter.died_at).toISOString()}  ${letter.stage.padEnd(7)} ${letter.reason.padEnd(18)} ${letter.org_id || '(unknown org)'}  evt_${letter.event_hex}  ${letter.detail.slice(0, 120)}\n`,
    );
  }
  if (shown === 0) process.stdout.write('no dead letters\n');
}

async function show(log: Log, seq: number): Promise<void> {
  const { letter, bodyBytes } = await letterAt(log, seq);
  const { body, ...rest } = letter;
  const cut = bodyBytes === null ? {} : { body_bytes: bodyBytes, body_bytes_kept: body.length };
  process.stdout.write(`${JSON.stringify({ seq, ...rest, ...cut, body: body.toString('utf8') }, null, 2)}\n`);
}

async function replayOne(log: Log, stored: StoredLetter): Promise<void> {
  const { seq, letter } = stored;
  try {
    await replayLetter(log, stored);
  } catch (error) {
    throw error instanceof NotReplayable ? new Error(`${error.message}; look at it with: show ${seq}`) : error;
  }
  process.stdout.write(`replayed ${seq}: evt_${letter.event_hex} of ${letter.org_id}\n`);
}

async function replay(log: Log, which: string): Promise<void> {
  if (which !== 'all') {
    await replayOne(log, await letterAt(log, sequence(which)));
    return;
  }
  for await (const letter of letters(log)) {
    if (!isReplayable(letter)) continue;
    // A letter whose event is lost must not prevent the replay of the others.
    await replayOne(log, letter).catch((error: unknown) => {
      if (letter.bodyBytes === null) throw error;
      process.stderr.write(`${messageOf(error)}\n`);
    });
  }
}

async function resend(log: Log, logSeq: number, logIndex: number): Promise<void> {
  if (!Number.isSafeInteger(logIndex) || logIndex < 0) throw new Error(USAGE);
  const place = `${logSeq}:${logIndex}`;
  const found = await eventAt(log, logSeq, logIndex);
  if (found === null) throw new Error(`the log no longer has an event at ${place}`);
  const { subject, event } = found;
  await sendEvent(log, subject, event, `resend:${place}`);
  process.stdout.write(`sent ${place} again: evt_${event.event_hex} of ${event.org_id}\n`);
}

/** Deletes letters and overwrites them on disk. */
async function remove(log: Log, which: string | undefined, org: string | undefined): Promise<void> {
  if ((which === undefined) === (org === undefined)) throw new Error(USAGE);
  if (org === undefined) {
    const { seq } = await letterAt(log, sequence(which));
    await deleteLetter(log, seq);
    process.stdout.write(`deleted ${seq}\n`);
    return;
  }
  let count = 0;
  for await (const { seq, letter } of letters(log)) {
    if (letter.org_id !== org) continue;
    await deleteLetter(log, seq);
    count += 1;
  }
  process.stdout.write(`deleted ${count} of ${org}\n`);
}

function sequence(text: string | undefined): number {
  const seq = Number(text);
  if (!Number.isSafeInteger(seq) || seq < 1) throw new Error(USAGE);
  return seq;
}

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

async function main(): Promise<void> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: { limit: { type: 'string', default: String(LIST_LIMIT) }, org: { type: 'string' } },
  });
  const [command, argument, second] = positionals;
  const env = parseEnv(process.env);
  const url = env.SERVICE_NATS_URL ?? localNatsUrl(env.SERVICE_DATA_DIR);
  const nc = await connectNats({ url, name: 'dead-letters', waitMs: 3000 });
  try {
    const log = await attachLog(nc);
    if (command === 'list') await list(log, sequence(values.limit));
    else if (command === 'show') await show(log, sequence(argument));
    else if (command === 'replay' && argument !== undefined) await replay(log, argument);
    else if (command === 'delete') await remove(log, argument, values.org);
    else if (command === 'resend' && second !== undefined) await resend(log, sequence(argument), Number(second));
    else throw new Error(USAGE);
  } finally {
    await nc.close();
  }
}

main().catch((error: unknown) => {
  process.stderr.write(`${messageOf(error)}\n`);
  leave(1);
});
