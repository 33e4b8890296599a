// Record of a saved view in KV and its key. The API alone writes and reads it.
import { z } from 'zod';
import { orgKey } from './org.ts';

/** A private view is visible to its maker only; an org view to every caller who may read traces. */
export const VIEW_SCOPES = ['private', 'org'] as const;

export const viewRecord = z.object({
  org_id: z.string(),
  view_id: z.string(),
  name: z.string(),
  page: z.string(),
  /** Query string of the page, without the leading question mark. */
  query: z.string(),
  scope: z.enum(VIEW_SCOPES),
  /** Kind and id of the caller that saved the view. Ids of users and of keys may be equal. */
  maker_kind: z.enum(['user', 'api_key']),
  made_by: z.string(),
  created_at: z.iso.datetime(),
  updated_at: z.iso.datetime(),
});
export type ViewRecord = z.infer<typeof viewRecord>;

/** Returns the KV key of a view. */
export const viewKey = (org_id: string, view_id: string): string => `${orgKey(org_id)}.${view_id}`;
