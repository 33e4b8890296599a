// Finds the traces that contain phrases: takes traces whose texts have the words, reads the texts, and
// returns the traces that have a text with every phrase. It reads a bounded number of bytes, the
// newest traces first; a trace whose phrases were found is read no further.
import { hasPhrases } from '../../../pipeline/domain/text/phrases.ts';
import { type ClickHouse, isTooLarge } from '../../../sql/client/client.ts';
import { readTexts } from '../../http/text_reads.ts';
import { type DocumentText, readDocumentTexts, readWordedTexts, type TraceRow } from './store.ts';

/** Maximum traces whose texts one request searches. */
export const PHRASE_TRACES_MAX = 2000;

export interface PhraseBounds {
  /** Words and number of the texts that one statement reads. A word takes some 6 bytes. */
  groupWordsMax: number;
  groupTextsMax: number;
  /** Bytes after which a statement ends, since texts of few words may be long as well. */
  statementBytesMax: number;
  /** Bytes of texts after which a search leaves the older traces. It decides one trace at least. */
  textBytesMax: number;
  /** Bytes of a list of texts; a longer one is read for fewer traces. */
  listBytesMax: number;
}
const BOUNDS: PhraseBounds = {
  groupWordsMax: 500_000,
  groupTextsMax: 2000,
  statementBytesMax: 32 * 1024 * 1024,
  textBytesMax: 128 * 1024 * 1024,
  listBytesMax: 16 * 1024 * 1024,
};

export interface PhraseSearch {
  clickhouse: ClickHouse;
  org_id: string;
  /** Words, those of the phrases included. */
  words: readonly string[];
  phrases: readonly string[];
  signal: AbortSignal;
  bounds?: PhraseBounds;
}

export interface PhraseTraces {
  /** Traces with a span that has all the words and phrases, newest first. */
  rows: TraceRow[];
  /** Number of the given traces that were searched, from the first on. */
  searched: number;
}

/** A text with the words. */
interface Text {
  trace_key: string;
  /** Number of its document. */
  doc: string;
  /** Start of its span, milliseconds. */
  started_ms: number;
  words: number;
}

/** Searches traces, which are given newest first. */
export async function findPhrases(search: PhraseSearch, traces: readonly TraceRow[]): Promise<PhraseTraces> {
  const { asked, texts } = await textsOf(search, traces);
  const reader = new TextReader(search, texts);
  await reader.read(inTurn(asked, texts, search.bounds ?? BOUNDS));
  const undecided = asked.findIndex((trace) => !reader.isDecided(trace.trace_key));
  const searched = undecided === -1 ? asked.length : undecided;
  return { rows: asked.slice(0, searched).filter((trace) => reader.found.has(trace.trace_key)), searched };
}

/**
 * Returns the texts of traces that have the words, by trace and newest first; of fewer traces if the
 * list is too long.
 */
async function textsOf(
  { clickhouse, org_id, words, signal, bounds = BOUNDS }: PhraseSearch,
  traces: readonly TraceRow[],
): Promise<{ asked: readonly TraceRow[]; texts: ReadonlyMap<string, Text[]> }> {
  if (traces.length === 0) return { asked: [], texts: new Map() };
  for (let count = traces.length; ; count = Math.ceil(count / 4)) {
    const asked = traces.slice(0, count);
    try {
      const rows = await readWordedTexts(
        clickhouse,
        {
          org_id,
          from_ms: Math.min(...asked.map((trace) => trace.started_ms)),
          to_ms: Math.max(...asked.map((trace) => Date.parse(trace.ended_at))),
          trace_keys: asked.map((trace) => trace.trace_key),
          words: [...words],
        },
        { signal, bytesMax: count === 1 ? undefined : bounds.listBytesMax },
      );
      return { asked, texts: new Map(rows.map((row) => [row.trace_key, newestFirst(row)])) };
    } catch (error) {
      if (!isTooLarge(error) || count === 1) throw error;
    }
  }
}

function newestFirst({
  trace_key,
  docs,
  times,
  lengths,
}: {
  trace_key: string;
  docs: readonly string[];
  times: readonly number[];
  lengths: readonly number[];
}): Text[] {
  return docs
    .map((doc, n) => ({ trace_key, doc, started_ms: times[n] ?? 0, words: lengths[n] ?? 0 }))
    .sort((a, b) => b.started_ms - a.started_ms);
}

/**
 * Yields the texts of traces in the order in which they are read: for some traces at a time the newest
 * text of each, which often repeats what was said before, then the others.
 */
function* inTurn(
  traces: readonly TraceRow[],
  texts: ReadonlyMap<string, readonly Text[]>,
  { groupWordsMax, groupTextsMax }: PhraseBounds,
): Generator<Text> {
  for (let at = 0; at < traces.length;) {
    const others: Text[][] = [];
    let words = 0;
    for (let n = 0; at < traces.length && n < groupTextsMax && words < groupWordsMax; at++, n++) {
      const [newest, ...rest] = texts.get(traces[at]?.trace_key ?? '') ?? [];
      if (newest === undefined) continue;
      words += newest.words;
      others.push(rest);
      yield newest;
    }
    yield* others.flat();
  }
}

/** Reads texts, in groups of bounded size, and remembers which traces are decided. */
class TextReader {
  /** Keys of the traces that have a text with every phrase. */
  readonly found = new Set<string>();
  readonly #search: PhraseSearch;
  readonly #bounds: PhraseBounds;
  /** Number of texts that were not read yet, by trace. */
  readonly #unread: Map<string, number>;
  /** Key of the trace whose texts are read however many bytes they have. */
  #first: string | null = null;
  #bytes = 0;

  constructor(search: PhraseSearch, texts: ReadonlyMap<string, readonly Text[]>) {
    this.#search = search;
    this.#bounds = search.bounds ?? BOUNDS;
    this.#unread = new Map([...texts].map(([key, own]) => [key, own.length]));
  }

  isDecided(trace_key: string): boolean {
    return this.found.has(trace_key) || (this.#unread.get(trace_key) ?? 0) === 0;
  }

  /** Reads texts in order, but none of a trace that has matched, nor many beyond the bound of bytes. */
  async read(texts: Iterable<Text>): Promise<void> {
    const { groupWordsMax, groupTextsMax } = this.#bounds;
    let group: Text[] = [];
    let words = 0;
    for (const text of texts) {
      this.#first ??= text.trace_key;
      if (group.length >= groupTextsMax || (group.length > 0 && words + text.words > groupWordsMax)) {
        await this.#readGroup(group);
        [group, words] = [[], 0];
      }
      if (!this.#isWanted(text)) continue;
      group.push(text);
      words += text.words;
    }
    await this.#readGroup(group);
  }

  #isWanted({ trace_key }: Text): boolean {
    const { textBytesMax } = this.#bounds;
    return !this.found.has(trace_key) && (this.#bytes < textBytesMax || trace_key === this.#first);
  }

  async #readGroup(group: readonly Text[]): Promise<void> {
    const { clickhouse, org_id, phrases, signal } = this.#search;
    const left = await readTexts(group, {
      stream: (texts) => readDocumentTexts.stream(clickhouse, documentsOf(org_id, texts), { signal }),
      keyOf: ({ doc }) => doc,
      take: ({ trace_key, prompt, response }: DocumentText) => {
        this.#bytes += Buffer.byteLength(prompt) + Buffer.byteLength(response);
        if (!this.found.has(trace_key) && hasPhrases(prompt, response, phrases)) this.found.add(trace_key);
      },
      isWanted: (text) => this.#isWanted(text),
      signal,
      bytesMax: this.#bounds.statementBytesMax,
    });
    // A text that was deleted meanwhile counts as read.
    const isLeft = new Set(left);
    for (const text of group)
      if (!isLeft.has(text)) this.#unread.set(text.trace_key, (this.#unread.get(text.trace_key) ?? 1) - 1);
  }
}

const documentsOf = (org_id: string, texts: readonly Text[]) => ({
  org_id,
  times: [...new Set(texts.map(({ started_ms }) => new Date(started_ms).toISOString().slice(0, 23).replace('T', ' ')))],
  docs: texts.map(({ doc }) => doc),
});
