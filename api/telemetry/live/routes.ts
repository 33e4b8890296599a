// The route of the live stream.
import { z } from 'zod';
import { hashKey, rawCredentialOf } from '../../http/auth.ts';
import { may, type OrgCredential } from '../../http/credential.ts';
import { ApiError } from '../../http/errors.ts';
import { defineRoute, type Route, STREAMED } from '../../http/route.ts';
import type { LiveHub } from './hub.ts';
import { liveMessage, liveParams, type Topic, TOPICS } from './schema.ts';

const TRACE_PREFIX = 'trace:';

export interface LiveDeps<Filter> {
  hub: Pick<LiveHub<Filter>, 'listen'>;
  /** Query parameters that filter traces. */
  filterParams: z.ZodRawShape;
  /** Returns the filter of these parameters; null if none is given. */
  filterOf: (org_id: string, query: Readonly<Record<string, unknown>>) => Filter | null;
  /**
   * Returns the caller as of now; null if the member has left or the key is revoked.
   * @param keyHash SHA-256 of the raw API key; empty for a member
   */
  present: (caller: OrgCredential, keyHash: string) => OrgCredential | null;
}

export function liveRoutes<Filter>(deps: LiveDeps<Filter>): Route[] {
  return [followLiveRoute(deps)];
}

function followLiveRoute<Filter>({ hub, filterParams, filterOf, present }: LiveDeps<Filter>): Route {
  return defineRoute({
    method: 'get',
    path: '/v1/live',
    operation_id: 'followLive',
    summary: 'Follow changes live',
    description:
      'Streams changes as server-sent events until the client disconnects. `traces` reports the traces that have started or become complete, by the filters of `GET /v1/traces` except `search`; `trace:{trace_id}` one trace whenever spans of it have landed; `incidents`, `evals` and `jobs` the new state of each; `budgets` the thresholds, limits, forecasts and anomalies that were reported. Each topic needs the permission to read its things.\n\nAfter the event `ready` nothing is missed: a client that lists then has everything. Changes come at most once a second, at most 200 traces at a time; `dropped` says how many more there were. A comment every 15 seconds keeps the connection open. After `resync`, changes were missed: list again. Before the service ends a stream it sends `bye`; connect again after the time in `retry`. Streams end after 10 minutes, and a client that leaves more than 1 MiB unread is disconnected. An organization can have 50 streams in each API process, with 10 different filters; past that, the request fails with 429 `rate_limited`.',
    tag: 'Live',
    permission: 'traces:read',
    org_in_query: true,
    query: z.object({ ...liveParams, ...filterParams }),
    response: liveMessage,
    media: ['text/event-stream'],
    errors: ['rate_limited'],
    handler: async ({ org_id, credential, query, req, res }) => {
      const names = query.topics.filter((name): name is Topic => Object.hasOwn(TOPICS, name));
      checkTopics(credential, names);
      const keyHash = credential.kind === 'api_key' ? hashKey(rawCredentialOf(req.headers) ?? '') : '';
      const given: Readonly<Record<string, unknown>> = query;
      const filters = Object.fromEntries(Object.keys(filterParams).map((name) => [name, given[name]]));
      await hub.listen(res, {
        org_id,
        topics: new Set(names),
        trace_ids: new Set(
          query.topics.filter((name) => name.startsWith(TRACE_PREFIX)).map((name) => name.slice(TRACE_PREFIX.length)),
        ),
        filter: filterOf(org_id, filters),
        isAllowed: () => {
          const caller = present(credential, keyHash);
          return (
            caller !== null &&
            ['traces:read' as const, ...names.map((name) => TOPICS[name])].every((one) => may(caller, one))
          );
        },
      });
      // A client that asks for the headers alone gets no stream.
      if (req.method === 'HEAD') res.end();
      return STREAMED;
    },
  });
}

/** @throws ApiError forbidden for a topic that the caller may not read */
function checkTopics(credential: OrgCredential, topics: readonly Topic[]): void {
  for (const topic of topics)
    if (!may(credential, TOPICS[topic]))
      throw new ApiError('forbidden', `topics: the topic ${topic} needs the permission ${TOPICS[topic]}.`);
}
