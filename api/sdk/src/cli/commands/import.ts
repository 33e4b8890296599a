// Imports telemetry of the past from a file through the backfill endpoint: it counts on the days on
// which it began, asks no budget and causes no webhook. A record that is imported again within a day
// is stored once.
import { type Call, type Command, EXIT } from '../command.ts';
import { isLangfuse, langfusePieces } from '../import/langfuse.ts';
import { isLangsmith, langsmithPieces } from '../import/langsmith.ts';
import { type Line, openLines } from '../import/lines.ts';
import { isOtlp, otlpPieces } from '../import/otlp.ts';
import { type Fields, isFields, NotImported, type Piece } from '../import/piece.ts';
import { Sender } from '../import/sender.ts';
import { count } from '../output.ts';
import { Progress } from '../progress.ts';

const FORMATS = ['otlp', 'langfuse', 'langsmith'] as const;
type Format = (typeof FORMATS)[number];

/** Reasons that are printed; further ones are counted. */
const REASONS_MAX = 20;
const REASON_CHARS_MAX = 300;

const PIECES: Readonly<Record<Format, (line: Fields, text: string) => Piece[]>> = {
  otlp: otlpPieces,
  langfuse: langfusePieces,
  langsmith: langsmithPieces,
};

export const importFile: Command = {
  name: 'import',
  usage: '<file>',
  about: 'Imports OTLP JSON lines, observations of Langfuse or runs of LangSmith; - is standard input',
  args: [1, 1],
  options: {
    from: { type: 'string', value: 'FORMAT', about: `${FORMATS.join(', ')}. Default: what each line looks like` },
    'from-line': {
      type: 'string',
      value: 'N',
      about: 'First line to import, to go on after an interruption. Default: 1',
    },
  },
  run: async (call) => {
    const { given, out } = call;
    const from = given.choice('from', FORMATS);
    const firstLine = given.whole('from-line', { min: 1, max: Number.MAX_SAFE_INTEGER, fallback: 1 });
    const result = await importLines(call, from, firstLine);
    const { lines, accepted, rejected, skipped } = result;
    await out.record(
      result,
      () =>
        `${count(accepted)} records of ${count(lines)} lines were imported; ${count(rejected)} were rejected.` +
        (skipped > 0 ? ` ${count(skipped)} lines hold metrics, or nothing.` : ''),
    );
    return rejected > 0 ? EXIT.refused : EXIT.ok;
  },
};

interface Result {
  lines: number;
  /** Spans, log records or runs that the service has stored, now or before. */
  accepted: number;
  rejected: number;
  /** Lines without a record that can be stored. */
  skipped: number;
}

async function importLines(
  { client, args, out, signal }: Call,
  from: Format | undefined,
  firstLine: number,
): Promise<Result> {
  const source = openLines(args[0] ?? '');
  const progress = new Progress('records');
  let [lines, rejected, reasons, skipped] = [0, 0, 0, 0];
  let last = firstLine - 1;
  const onRejected = (line: number, records: number, reason: string): void => {
    rejected += records;
    reasons += 1;
    if (reasons > REASONS_MAX) return;
    progress.end();
    out.note(`from line ${line}: ${reason.slice(0, REASON_CHARS_MAX)}`);
    if (reasons === REASONS_MAX) out.note('Further reasons are not printed.');
  };
  const sender = new Sender({ client, signal, onRejected });
  try {
    for await (const line of source.lines) {
      if (line.number < firstLine || line.text.trim() === '') continue;
      lines += 1;
      const pieces = piecesOf(line, from, onRejected);
      if (pieces?.length === 0) skipped += 1;
      for (const piece of pieces ?? []) await sender.add(line.number, piece);
      last = line.number;
      progress.show(source.readBytes(), source.totalBytes, sender.accepted);
      signal.throwIfAborted();
    }
    await sender.end();
  } catch (error) {
    progress.end();
    out.note(
      `Every line before line ${sender.firstOpen(last + 1)} was sent. Go on with --from-line ${sender.firstOpen(last + 1)}.`,
    );
    throw error;
  } finally {
    progress.end();
  }
  return { lines, accepted: sender.accepted, rejected, skipped };
}

/** Returns the pieces of a line; null where it cannot be imported, which is reported. */
function piecesOf(
  { number, text }: Line,
  from: Format | undefined,
  onRejected: (line: number, records: number, reason: string) => void,
): Piece[] | null {
  try {
    const line = parsed(text);
    return PIECES[from ?? formatOf(line)](line, text);
  } catch (error) {
    if (!(error instanceof NotImported)) throw error;
    onRejected(number, 1, error.message);
    return null;
  }
}

function parsed(text: string): Fields {
  let line: unknown;
  try {
    line = JSON.parse(text) as unknown;
  } catch {
    throw new NotImported('the line is not JSON');
  }
  if (!isFields(line)) throw new NotImported('the line is no JSON object');
  return line;
}

function formatOf(line: Fields): Format {
  if (isOtlp(line)) return 'otlp';
  if (isLangsmith(line)) return 'langsmith';
  if (isLangfuse(line)) return 'langfuse';
  throw new NotImported(`the line looks like none of ${FORMATS.join(', ')}; --from names the format`);
}
