// Request and response shapes of sessions and end users.
import { z } from 'zod';
import { cursorQuery } from '../../http/list_pages.ts';
import { decodeCursor, encodeCursor } from '../../http/pagination.ts';
import { timeParam } from '../../http/time_param.ts';

const ID_CHARS_MAX = 1024;
/** Maximum characters of a cursor, which holds an id. */
const CURSOR_CHARS_MAX = 3000;
const idParam = z.string().min(1).max(ID_CHARS_MAX).optional();

export const groupsQuery = z
  .object({
    ...cursorQuery(CURSOR_CHARS_MAX),
    session_id: idParam.describe('Traces of this session only'),
    user_id: idParam.describe('Traces of this end user only'),
    agent_id: idParam.describe('Traces of this agent only'),
    since: timeParam.optional().describe('Traces that started at or after this time'),
    until: timeParam.optional().describe('Traces that started at or before this time'),
  })
  .strip();
export type GroupsQuery = z.output<typeof groupsQuery>;

const sums = {
  traces: z.int().min(0),
  failed_traces: z.int().min(0).describe('Number of these traces whose outcome is error or timeout'),
  spans: z.int().min(0),
  cost_usd: z.number(),
  input_tokens: z.int().min(0),
  output_tokens: z.int().min(0),
  first_seen: z.iso.datetime().describe('Start of the first trace'),
  last_seen: z.iso.datetime().describe('End of the last trace'),
};

export const sessionItem = z.object({ session_id: z.string(), ...sums }).meta({ id: 'Session' });
export type SessionItem = z.infer<typeof sessionItem>;
export const userItem = z.object({ user_id: z.string(), ...sums }).meta({ id: 'EndUser' });

/**
 * Position after which a page begins: the time and id of the last item, and the number of items
 * before the page.
 */
const place = z.object({ ms: z.int(), id: z.string(), before: z.int().min(0) });
type Place = z.infer<typeof place>;
export const cursorOf = (at: Place): string => encodeCursor(at);
export const placeOf = (cursor: string): Place => decodeCursor(cursor, place);
