// The connections that carry the streams of all tabs. Streams of one organization share a connection, as
// the route takes several topics; only the filters of traces cannot be shared. Pure.
import type { LiveStream } from './connection.ts';

/** Connections at once: HTTP/1.1 allows a browser six per host, and requests need the others. */
export const CONNECTIONS_MAX = 2;
/** Topics of one connection, as the API bounds them. */
const TOPICS_MAX = 16;

interface Shared {
  org_id: string;
  /** Filters of the topic `traces`; null: the connection has no such topic yet. */
  filters: string | null;
  topics: Set<string>;
  streams: string[];
}

/**
 * Returns the streams of each connection, by the connection: both are JSON of a LiveStream. Streams for which
 * no connection is left are missing.
 * @param streams the most important first
 */
export function connectionsOf(streams: readonly string[]): Map<string, string[]> {
  const shared: Shared[] = [];
  for (const stream of streams) {
    const { org_id, query } = JSON.parse(stream) as LiveStream;
    const params = new URLSearchParams(query);
    const topics = (params.get('topics') ?? '').split(',');
    params.delete('topics');
    const filters = topics.includes('traces') ? params.toString() : null;
    const fitting = shared.find(
      (one) =>
        one.org_id === org_id &&
        (filters === null || one.filters === null || one.filters === filters) &&
        new Set([...one.topics, ...topics]).size <= TOPICS_MAX,
    );
    if (fitting === undefined) {
      shared.push({ org_id, filters, topics: new Set(topics), streams: [stream] });
    } else {
      for (const topic of topics) fitting.topics.add(topic);
      fitting.filters ??= filters;
      fitting.streams.push(stream);
    }
  }
  return new Map(shared.slice(0, CONNECTIONS_MAX).map((one) => [connectionOf(one), one.streams]));
}

/** The topics stand in alphabetical order, so that the order in which tabs ask makes no other connection. */
function connectionOf({ org_id, filters, topics }: Shared): string {
  const params = new URLSearchParams({ topics: [...topics].toSorted().join(',') });
  const query = filters === null || filters === '' ? params.toString() : `${params.toString()}&${filters}`;
  return JSON.stringify({ org_id, query } satisfies LiveStream);
}
