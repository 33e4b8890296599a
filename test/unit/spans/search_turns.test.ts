// Searches that wait for a place: slow ones of an organization leave places to others, and a search
// whose caller disconnects sends no statement any more.
import { expect, test } from 'vitest';
import {
  DocumentSearch,
  SEARCHES_ORG_AT_ONCE,
  SEARCHES_ORG_MAX,
} from '../../../api/telemetry/spans/postings/document_search.ts';
import type { ClickHouse, Read } from '../../../sql/client/client.ts';

const NEVER = new AbortController().signal;
const turn = () => new Promise((resolve) => setImmediate(resolve));

/** A search over a store whose statements end when the test says so, with no document. */
function aSearch() {
  const statements: { org: unknown; end: () => void }[] = [];
  const clickhouse: Pick<ClickHouse, 'rows'> = {
    rows: ({ params }: Read) =>
      new Promise((resolve) => {
        statements.push({
          org: params?.['org_id'],
          end: () => {
            resolve([]);
          },
        });
      }),
  };
  const documents = new DocumentSearch(clickhouse as ClickHouse);
  const search = (org_id: string, signal = NEVER) =>
    documents.rank(
      { org_id, words: ['timeout'], required: new Set(), since: undefined, until: undefined, filters: null, limit: 1 },
      signal,
    );
  return { statements, search };
}

test('slow searches of one organization leave a place to another, and too many are rejected with 429', async () => {
  const { statements, search } = aSearch();
  const searches = Array.from({ length: SEARCHES_ORG_MAX }, () => search('org_a'));
  await expect(search('org_a')).rejects.toMatchObject({ code: 'rate_limited', headers: { 'Retry-After': '1' } });
  const other = search('org_b');
  await turn();
  expect(statements.map(({ org }) => org)).toEqual([
    ...Array.from({ length: SEARCHES_ORG_AT_ONCE }, () => 'org_a'),
    'org_b',
  ]);
  for (let ended = 0; ended <= SEARCHES_ORG_MAX; ended += 1) {
    statements[ended]?.end();
    await turn();
  }
  await expect(Promise.all([...searches, other])).resolves.toHaveLength(SEARCHES_ORG_MAX + 1);
});

test('a search whose caller disconnects while it waits sends no statement', async () => {
  const { statements, search } = aSearch();
  const gone = new AbortController();
  const running = Array.from({ length: SEARCHES_ORG_AT_ONCE }, () => search('org_a'));
  const waiting = search('org_a', gone.signal);
  await turn();
  gone.abort(new Error('disconnected'));
  await expect(waiting).rejects.toThrow('disconnected');
  for (const { end } of statements) end();
  await Promise.all(running);
  expect(statements).toHaveLength(SEARCHES_ORG_AT_ONCE);
});
