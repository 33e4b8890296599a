// Searches for the traces that have words, over a store that answers when the test says so: searches that run beside each
// other share their reads, and what one has found is taken while no segment changes.
import { expect, test } from 'vitest';
import { DocumentSearch } from '../../../api/telemetry/spans/postings/document_search.ts';
import type { ClickHouse, Read } from '../../../sql/client/client.ts';

const NEVER = new AbortController().signal;
const ORG = 'org_a';
/** Documents of one segment, by place: the key of the trace, and the words. */
const DOCUMENTS = [
  { trace: 11, words: ['red', 'blue'] },
  { trace: 12, words: ['red'] },
  { trace: 13, words: ['blue', 'red', 'red'] },
];

const bytesOf = (width: number, numbers: readonly number[]): Buffer => {
  const bytes = Buffer.alloc(numbers.length * width);
  for (const [index, number] of numbers.entries())
    if (width === 8) bytes.writeBigUInt64LE(BigInt(number), index * width);
    else bytes.writeUIntLE(number, index * width, width);
  return bytes;
};
const listOf = (width: number, numbers: readonly number[]): Buffer =>
  Buffer.concat([Buffer.from([numbers.length]), bytesOf(width, numbers)]);

/** Rows of the store's binary answers, by the name of the statement. */
const BINARY: Record<string, (read: Read) => Buffer> = {
  search_documents: () =>
    Buffer.concat([
      bytesOf(8, [1]),
      listOf(2, [...DOCUMENTS.keys()]),
      listOf(4, [...DOCUMENTS.map(({ words }) => words.length)]),
      Buffer.from([DOCUMENTS.length]),
      Buffer.alloc(DOCUMENTS.length * 8),
    ]),
  search_postings: ({ sql, params }) =>
    Buffer.concat(
      (params?.['words'] as string[]).map((word, index) => {
        const places = [...DOCUMENTS.keys()].filter((place) => DOCUMENTS[place]?.words.includes(word));
        const counts = places.map((place) => DOCUMENTS[place]?.words.filter((one) => one === word).length ?? 0);
        const counted = /\bcounts\b/.test(sql) ? listOf(2, counts) : Buffer.alloc(0);
        return Buffer.concat([bytesOf(1, [index]), bytesOf(8, [1]), listOf(2, places), counted]);
      }),
    ),
  search_traces_of_documents: ({ params }) =>
    bytesOf(
      8,
      (params?.['docs'] as bigint[]).map((doc) => DOCUMENTS[Number(doc - 65_536n)]?.trace ?? 0),
    ),
};

/** A search over a store that holds each statement back until the test lets it go, with the sent statements. */
function aSearch() {
  const sent: { name: string; counted: boolean; signal: AbortSignal | undefined }[] = [];
  const held: { go: () => void; fail: (error: Error) => void }[] = [];
  let version = 0;
  const turn = ({ name, sql, signal }: Read) =>
    new Promise<void>((go, fail) => {
      sent.push({ name, counted: /\bcounts\b/.test(sql), signal });
      held.push({ go, fail });
      signal?.addEventListener('abort', () => {
        fail(signal.reason as Error);
      });
    });
  const clickhouse = {
    async rows(read: Read) {
      await turn(read);
      return [
        {
          segment: '1',
          documents: '3',
          words: '6',
          numbers: String(version),
          first: '65536',
          last: '65538',
          from_ms: '0',
          to_ms: '0',
        },
      ];
    },
    async *bytes(read: Read) {
      await turn(read);
      yield BINARY[read.name]?.(read) ?? Buffer.alloc(0);
    },
  };
  const step = async () => {
    for (const { go } of held.splice(0)) go();
    for (let turns = 0; turns < 3; turns += 1) await new Promise((resolve) => setImmediate(resolve));
  };
  const documents = new DocumentSearch(clickhouse as unknown as ClickHouse);
  return {
    sent,
    names: () => sent.map(({ name }) => name),
    /** Makes the store answer with another version of the segment. */
    change: () => {
      version += 1;
    },
    fail: (error: Error) => {
      for (const { fail } of held.splice(0)) fail(error);
    },
    /** Lets the sent statements go. */
    step,
    /** Lets statements go until no more are sent. */
    async settle() {
      do await step();
      while (held.length > 0);
    },
    async traces(words: readonly string[], signal = NEVER, since?: number) {
      const found = await documents.traces({ org_id: ORG, words, since, until: undefined }, signal);
      return found?.keys().toSorted() ?? null;
    },
    async ranked(words: readonly string[]) {
      const ranking = await documents.rank(
        { org_id: ORG, words, required: new Set(), since: undefined, until: undefined, filters: null, limit: 9 },
        NEVER,
      );
      return ranking.best.map(({ place }) => place);
    },
  };
}

const READS = ['search_documents', 'search_postings', 'search_traces_of_documents'];
const beyondSegments = (names: readonly string[]) => names.filter((name) => name !== 'search_segments').toSorted();

test('searches for the same words at the same time read postings once', async () => {
  const search = aSearch();
  const found = Promise.all([
    search.traces(['red', 'blue']),
    search.traces(['blue', 'red']),
    search.traces(['red', 'blue']),
  ]);
  await search.settle();
  expect(await found).toEqual(Array.from({ length: 3 }, () => ['11', '13']));
  expect(beyondSegments(search.names())).toEqual(READS);
});

test('a search that comes while another reads postings waits for it', async () => {
  const search = aSearch();
  const first = search.traces(['red', 'blue']);
  while (!search.names().includes('search_postings')) await search.step();
  const second = search.traces(['red', 'blue']);
  await search.settle();
  expect(await Promise.all([first, second])).toEqual([
    ['11', '13'],
    ['11', '13'],
  ]);
  expect(beyondSegments(search.names())).toEqual(READS);
});

test('searches for other words or another time do not share', async () => {
  const search = aSearch();
  const found = Promise.all([search.traces(['red']), search.traces(['blue']), search.traces(['red'], NEVER, -1)]);
  await search.settle();
  expect(await found).toEqual([
    ['11', '12', '13'],
    ['11', '13'],
    ['11', '12', '13'],
  ]);
  expect(search.names().filter((name) => name === 'search_traces_of_documents')).toHaveLength(3);
});

test.each([0, 1])('caller %i that disconnects does not end the search for the other', async (leaving) => {
  const search = aSearch();
  const callers = [new AbortController(), new AbortController()];
  const found = callers.map(({ signal }) => search.traces(['red', 'blue'], signal));
  await new Promise((resolve) => setImmediate(resolve));
  callers[leaving]?.abort(new Error('disconnected'));
  await expect(found[leaving]).rejects.toThrow('disconnected');
  await search.settle();
  expect(await found[1 - leaving]).toEqual(['11', '13']);
  expect(beyondSegments(search.names())).toEqual(READS);
});

test('a search whose callers have all disconnected ends its statements', async () => {
  const search = aSearch();
  const callers = [new AbortController(), new AbortController()];
  const found = callers.map(({ signal }) => search.traces(['red', 'blue'], signal));
  await new Promise((resolve) => setImmediate(resolve));
  for (const caller of callers) caller.abort(new Error('disconnected'));
  for (const one of found) await expect(one).rejects.toThrow('disconnected');
  expect(search.sent.map(({ signal }) => signal?.aborted)).toEqual(search.sent.map(() => true));
});

test('a failure is not kept: the next search reads again', async () => {
  const search = aSearch();
  const found = [search.traces(['red']), search.traces(['red'])];
  await new Promise((resolve) => setImmediate(resolve));
  search.fail(new Error('the store is away'));
  for (const one of found) await expect(one).rejects.toThrow('the store is away');
  const next = search.traces(['red']);
  await search.settle();
  expect(await next).toEqual(['11', '12', '13']);
});

test('what was found is taken while no segment changes, and found anew when one has', async () => {
  const search = aSearch();
  const traces = async () => {
    const from = search.sent.length;
    const found = search.traces(['red']);
    await search.settle();
    return { found: await found, names: search.names().slice(from) };
  };
  await traces();
  expect(await traces()).toEqual({ found: ['11', '12', '13'], names: ['search_segments'] });
  search.change();
  const changed = await traces();
  expect([changed.found, beyondSegments(changed.names)]).toEqual([['11', '12', '13'], READS]);
  expect(await traces()).toEqual({ found: ['11', '12', '13'], names: ['search_segments'] });
});

test('a search that joins another finds anew if a segment has changed meanwhile', async () => {
  const search = aSearch();
  const first = search.traces(['red']);
  await search.settle();
  await first;
  search.change();
  const [second, third] = [search.traces(['red']), search.traces(['red'])];
  await search.settle();
  expect(await Promise.all([second, third])).toEqual(Array.from({ length: 2 }, () => ['11', '12', '13']));
  expect(search.names().filter((name) => name === 'search_postings')).toHaveLength(2);
});

test('a search for traces reads no counts, and a ranked search for the same word reads them', async () => {
  const search = aSearch();
  const found = search.traces(['red']);
  await search.settle();
  await found;
  const counted = () => search.sent.filter(({ name }) => name === 'search_postings').map((one) => one.counted);
  expect(counted()).toEqual([false]);
  for (let again = 0; again < 2; again += 1) {
    const ranked = search.ranked(['red']);
    await search.settle();
    // Without its counts, the longest document would come last.
    expect(await ranked).toEqual([1, 2, 0]);
  }
  expect(counted()).toEqual([false, true]);
  const later = search.traces(['red', 'blue']);
  await search.settle();
  await later;
  // Counted postings serve a search for traces as well; those of the other word are read without counts.
  expect(counted()).toEqual([false, true, false]);
});
