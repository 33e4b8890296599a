// Turns the error of an ingest request into an entry of the list of refusals.
import type { IncomingMessage } from 'node:http';
import type { Refusals } from '../../../ops/exchange/refusals.ts';
import { KEY_PREFIX, rawCredentialOf } from '../../http/auth.ts';
import type { ApiError } from '../../http/errors.ts';

/** Characters of a key that are shown, as in the list of keys. */
const PREFIX_CHARS = 12;

export interface RefusalDeps {
  refusals: Pick<Refusals, 'note'>;
  development: boolean;
  hasOrg: (org_id: string) => boolean;
  /** Milliseconds since the epoch. */
  now: () => number;
}

/**
 * Notes a refused request.
 * @param org_id organization of the credential; empty if the credential is not valid
 * @param named organization that the path names; undefined without one
 */
export function noteRefusal(
  { refusals, development, hasOrg, now }: RefusalDeps,
  req: Pick<IncomingMessage, 'headers' | 'url'>,
  { org_id, named }: { org_id: string; named: string | undefined },
  { code, detail, status }: Pick<ApiError, 'code' | 'detail' | 'status'>,
): void {
  if (status >= 500) return;
  const header = req.headers['x-org-id'];
  const guessed = named ?? (typeof header === 'string' ? header : '');
  const owner = org_id !== '' ? org_id : development && hasOrg(guessed) ? guessed : null;
  if (owner === null) return;
  const raw = rawCredentialOf(req.headers);
  refusals.note(owner, {
    at: new Date(now()).toISOString(),
    path: (req.url ?? '').split('?', 1)[0] ?? '',
    code,
    detail,
    key_prefix: raw?.startsWith(KEY_PREFIX) === true ? raw.slice(0, PREFIX_CHARS) : null,
  });
}
