// Deletion of the gateway's cached answers. They are found by the call that asked for them, not by
// the person whom they concern, so an erasure deletes all of an organization.
import { CACHE_STREAM, cacheSubject } from '../../schemas/streams.ts';
import { tokenOf } from '../../schemas/records/webhook.ts';
import type { Log } from '../platform/nats/open_log.ts';

/** Deletes the cached answers of an organization. Returns their number. */
export async function purgeCachedAnswers({ jsm }: Pick<Log, 'jsm'>, org_id: string): Promise<number> {
  return (await jsm.streams.purge(CACHE_STREAM, { filter: cacheSubject(tokenOf(org_id), '*') })).purged;
}
