// Request and response shapes of saved views.
import { z } from 'zod';
import { VIEW_SCOPES } from '../../../schemas/records/view.ts';
import { offsetQuery } from '../../http/pagination.ts';

const NAME_CHARS_MAX = 100;
const PAGE_CHARS_MAX = 40;
const QUERY_CHARS_MAX = 4096;

const name = z.string().trim().min(1).max(NAME_CHARS_MAX);
const page = z
  .string()
  .max(PAGE_CHARS_MAX)
  .regex(/^[a-z][a-z0-9_-]*$/, { error: 'must be lower-case letters, digits, hyphens and underscores' })
  .describe('Page that the view belongs to, such as traces');
const query = z
  .string()
  .max(QUERY_CHARS_MAX)
  .regex(/^([!-"$->@-~][!-"$-~]*)?$/, {
    error: 'must be a URL query in ASCII, without a leading question mark, spaces and #',
  })
  .describe('Query string of the page, percent-encoded, without the leading question mark. May be empty');
const scope = z
  .enum(VIEW_SCOPES)
  .describe('private: visible to its maker only. org: visible to everybody in the organization who may read traces');

export const createBody = z.strictObject({ name, page, query, scope: scope.default('private') });
export type CreateBody = z.output<typeof createBody>;

export const patchBody = z.strictObject({
  name: name.optional(),
  query: query.optional(),
  scope: scope.optional(),
});
export type PatchBody = z.output<typeof patchBody>;

export const listQuery = z.object({ ...offsetQuery, page: page.optional() });
export type ListQuery = z.output<typeof listQuery>;

export const viewParams = z.object({ view_id: z.string() });

export const viewItem = z
  .object({
    view_id: z.string(),
    name: z.string(),
    page: z.string(),
    query: z.string(),
    scope: z.enum(VIEW_SCOPES),
    made_by: z.string().describe('Id of the user or of the API key that saved the view'),
    created_at: z.iso.datetime(),
    updated_at: z.iso.datetime(),
  })
  .meta({ id: 'View' });
export type ViewItem = z.infer<typeof viewItem>;

export const deletedView = z.object({ view_id: z.string(), deleted: z.literal(true) });
