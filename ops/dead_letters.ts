// Operator command for dead letters: what can never land, why, and sending it through the log again.
//   npm run dead-letters -- list [--limit N]
//   npm run dead-letters -- show SEQ
//   npm run dead-letters -- replay SEQ|all
// A replayed event goes into the ingest log as it came; its id is the same, so it lands once. The letter is removed only
// after the log has stored the event.
import { parseArgs } from 'node:util';
import { headers } from '@nats-io/transport-node';
import { deadLetterCodec, FINGERPRINT_HEADER, ingestBatchCodec, type DeadLetter, type SourceFormat } from '../schemas/codec.ts';
import { connectNats } from './nats/connect.ts';
import { localNatsUrl } from './secrets.ts';
import { openLog, type Log } from './nats/open_log.ts';
import { leave } from './process/leave.ts';
import { DEAD_LETTERS_STREAM, ingestSubject } from './streams.ts';
import { parseEnv } from './env.ts';

const USAGE = 'usage: npm run dead-letters -- list [--limit N] | show SEQ | replay SEQ|all';
const LIST_LIMIT = 100;

interface Letter {
  seq: number;
  letter: DeadLetter;
}

async function read(log: Log, seq: number): Promise<Letter | null> {
  const message = await log.jsm.streams.getMessage(DEAD_LETTERS_STREAM, { seq });
  return message === null ? null : { seq, letter: deadLetterCodec.decode(message.data, message.header.get(FINGERPRINT_HEADER)) };
}

async function* letters(log: Log): AsyncGenerator<Letter> {
  const { state } = await log.jsm.streams.info(DEAD_LETTERS_STREAM);
  for (let seq = state.first_seq; seq <= state.last_seq && state.messages > 0; seq += 1) {
    const letter = await read(log, seq);
    if (letter !== null) yield letter;
  }
}

async function list(log: Log, limit: number): Promise<void> {
  let shown = 0;
  for await (const { seq, letter } of letters(log)) {
    if (shown >= limit) {
      process.stdout.write(`… more; --limit ${String(limit * 2)} shows them\n`);
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
  const found = await read(log, seq);
  if (found === null) throw new Error(`no dead letter ${String(seq)}`);
  const { body, ...rest } = found.letter;
  process.stdout.write(`${JSON.stringify({ seq, ...rest, body: body.toString('utf8') }, null, 2)}\n`);
}

async function replayOne(log: Log, { seq, letter }: Letter): Promise<void> {
  if (letter.org_id === '')
    throw new Error(
      `dead letter ${String(seq)} is no event that could be sent again (${letter.reason}); look at it with: show ${String(seq)}`,
    );
  const { org_id, event_hex, trace_id, received_at, partition } = letter;
  const data = ingestBatchCodec.encode({
    events: [{ org_id, event_hex, trace_id, received_at, format: letter.format as SourceFormat, body: letter.body.toString('utf8') }],
  });
  const head = headers();
  head.set(FINGERPRINT_HEADER, ingestBatchCodec.fingerprint);
  // The message id makes a command that was interrupted between its two steps safe to run again.
  await log.js.publish(ingestSubject(partition), data, { headers: head, msgID: `replay:${String(seq)}:${String(letter.died_at)}` });
  await log.jsm.streams.deleteMessage(DEAD_LETTERS_STREAM, seq);
  process.stdout.write(`replayed ${String(seq)}: evt_${event_hex} of ${org_id}\n`);
}

async function replay(log: Log, which: string): Promise<void> {
  if (which !== 'all') {
    const found = await read(log, sequence(which));
    if (found === null) throw new Error(`no dead letter ${which}`);
    await replayOne(log, found);
    return;
  }
  for await (const letter of letters(log)) {
    if (letter.letter.org_id !== '') await replayOne(log, letter);
  }
}

function sequence(text: string | undefined): number {
  const seq = Number(text);
  if (!Number.isSafeInteger(seq) || seq < 1) throw new Error(USAGE);
  return seq;
}

async function main(): Promise<void> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: { limit: { type: 'string', default: String(LIST_LIMIT) } },
  });
  const [command, argument] = positionals;
  const env = parseEnv(process.env);
  const url = env.SERVICE_NATS_URL ?? localNatsUrl(env.SERVICE_DATA_DIR);
  const nc = await connectNats({ url, name: 'dead-letters', waitMs: 3000 });
  try {
    const log = await openLog(nc, { replicas: env.SERVICE_NATS_REPLICAS, logBytesMax: env.SERVICE_LOG_MAX_BYTES });
    if (command === 'list') await list(log, sequence(values.limit));
    else if (command === 'show') await show(log, sequence(argument));
    else if (command === 'replay' && argument !== undefined) await replay(log, argument);
    else throw new Error(USAGE);
  } finally {
    await nc.close();
  }
}

main().catch((error: unknown) => {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
  leave(1);
});
