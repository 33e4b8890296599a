// OTLP JSON lines, as the file exporter of the OpenTelemetry Collector writes them: an export request
// of one signal a line. Lines are sent as they are, so that no digit of theirs changes.
import { type Fields, isFields, LOGS, NotImported, type Piece, type Target, TRACES } from './piece.ts';

/** Characters of a line beyond which it is sent in parts. */
const LINE_CHARS_MAX = 1024 * 1024;
/** Records of a part. */
const PART_RECORDS = 100;

interface Signal {
  target: Target;
  resources: string;
  scopes: string;
  records: string;
}

const SIGNALS: readonly Signal[] = [
  { target: TRACES, resources: 'resourceSpans', scopes: 'scopeSpans', records: 'spans' },
  { target: LOGS, resources: 'resourceLogs', scopes: 'scopeLogs', records: 'logRecords' },
];

export const isOtlp = (line: Fields): boolean =>
  SIGNALS.some(({ resources }) => resources in line) || 'resourceMetrics' in line;

const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? (value as unknown[]) : []);

/** Returns the pieces of a line; none for metrics, which the service does not store. @throws NotImported */
export function otlpPieces(line: Fields, text: string): Piece[] {
  if ('resourceMetrics' in line) return [];
  const signal = SIGNALS.find(({ resources }) => resources in line);
  if (signal === undefined) throw new NotImported('the line is no OTLP export');
  const { target, resources } = signal;
  const inner = text.length <= LINE_CHARS_MAX ? innerText(text, resources, line) : null;
  if (inner === null) return partsOf(line, signal);
  const records = listOf(line[resources]).reduce<number>((sum, resource) => sum + recordsOf(resource, signal), 0);
  return records === 0 ? [] : [{ target, text: inner, records }];
}

/** Returns the text between the brackets of the list of resources; null where the line has more than this list. */
function innerText(text: string, name: string, line: Fields): string | null {
  const head = `{"${name}":[`;
  const whole = text.trim();
  return Object.keys(line).length === 1 && whole.startsWith(head) && whole.endsWith(']}')
    ? whole.slice(head.length, -2)
    : null;
}

function recordsOf(resource: unknown, { scopes, records }: Signal): number {
  if (!isFields(resource)) return 0;
  return listOf(resource[scopes]).reduce<number>(
    (sum, scope) => sum + (isFields(scope) ? listOf(scope[records]).length : 0),
    0,
  );
}

/** Returns a line as parts of a few records each. */
function partsOf(line: Fields, { target, resources, scopes, records }: Signal): Piece[] {
  const pieces: Piece[] = [];
  for (const resource of listOf(line[resources])) {
    if (!isFields(resource)) throw new NotImported(`${resources}: must be objects`);
    for (const scope of listOf(resource[scopes])) {
      if (!isFields(scope)) throw new NotImported(`${scopes}: must be objects`);
      const all = listOf(scope[records]);
      for (let from = 0; from < all.length; from += PART_RECORDS) {
        const part = all.slice(from, from + PART_RECORDS);
        const text = JSON.stringify({ ...resource, [scopes]: [{ ...scope, [records]: part }] });
        pieces.push({ target, text, records: part.length });
      }
    }
  }
  return pieces;
}
