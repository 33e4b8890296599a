// Request and response shapes of sessions and end users.
import { z } from 'zod';
import { scoreSource } from '../../http/trace_items.ts';
import { outcome } from '../../../schemas/formats/fields.ts';
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
  failed_share: z.number().min(0).max(1).describe('failed_traces divided by traces'),
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

const DAYS_MAX = 90;
const DAYS_DEFAULT = 30;
const DAYS_ERROR = { error: `must be an integer between 1 and ${DAYS_MAX}` };
const daysParam = z
  .string()
  .regex(/^\d{1,4}$/, DAYS_ERROR)
  .transform(Number)
  .pipe(z.int().min(1, DAYS_ERROR).max(DAYS_MAX, DAYS_ERROR))
  .default(DAYS_DEFAULT)
  .meta({ type: 'integer', minimum: 1, maximum: DAYS_MAX, default: DAYS_DEFAULT });

export const sessionParams = z.object({ session_id: z.string() });
export const userParams = z.object({ user_id: z.string() });
export const turnsQuery = z.object(cursorQuery());
export type TurnsQuery = z.output<typeof turnsQuery>;
export const userQuery = turnsQuery.extend({
  days: daysParam.describe('Number of days in by_day, up to and including today, UTC'),
});
export type UserQuery = z.output<typeof userQuery>;

/** Maximum characters of the text of the user, and of the answer, in a turn. */
export const TURN_CHARS_MAX = 4000;
const turnText = (of: string) =>
  z
    .object({
      text: z.string().describe(`First ${TURN_CHARS_MAX} characters`),
      truncated: z.boolean().describe('Whether the text is longer'),
    })
    .nullable()
    .describe(`${of}; null if no text is stored`);

const turnScore = z.object({
  name: z.string(),
  source: scoreSource,
  value: z.union([z.number(), z.boolean(), z.string()]).nullable().describe('null if the judge failed'),
  verdict: z.enum(['pass', 'warn', 'fail', 'error']).nullable().describe('Verdict of a judge; null for source user'),
});
export type TurnScore = z.infer<typeof turnScore>;

const turn = z
  .object({
    trace_id: z.string(),
    root_span_name: z.string().nullable(),
    agent_id: z.string().nullable(),
    session_id: z.string().nullable(),
    user_id: z.string().nullable(),
    outcome,
    started_at: z.iso.datetime(),
    ended_at: z.iso.datetime(),
    duration_ms: z.int().min(0),
    span_count: z.int().min(1),
    input_tokens: z.int().min(0),
    output_tokens: z.int().min(0),
    cost_usd: z.number(),
    user_text: turnText('Last message of the user in the prompt of the root span or of the first model call'),
    answer: turnText('Response of the root span or of the model call that ended last'),
    scores: z.array(turnScore).describe('Newest score of each name and of each judge'),
  })
  .meta({ id: 'Turn' });
export type Turn = z.infer<typeof turn>;
const turns = z.array(turn).describe('One page of the traces, oldest first');

export const sessionDetail = sessionItem.extend({ turns }).meta({ id: 'SessionDetail' });
export const userDetail = userItem
  .extend({
    sessions: z.int().min(0).describe('Number of sessions. `GET /v1/sessions?user_id=` lists them'),
    by_day: z
      .array(
        z.object({
          date: z.iso.date(),
          traces: z.int().min(0),
          failed_traces: z.int().min(0),
          sessions: z.int().min(0),
          cost_usd: z.number(),
          input_tokens: z.int().min(0),
          output_tokens: z.int().min(0),
        }),
      )
      .describe('Every one of the last days, by the day on which traces began'),
    turns,
  })
  .meta({ id: 'EndUserDetail' });
export type UserDay = z.infer<typeof userDetail>['by_day'][number];

/** Position after which a page of turns begins. */
const turnPlace = z.object({ ms: z.int(), key: z.string().regex(/^\d{1,20}$/), before: z.int().min(0) });
type TurnPlace = z.infer<typeof turnPlace>;
export const turnCursorOf = (at: TurnPlace): string => encodeCursor(at);
export const turnPlaceOf = (cursor: string): TurnPlace => decodeCursor(cursor, turnPlace);

/**
 * Position after which a page begins: the time and id of the last item, and the number of items
 * before the page.
 */
const place = z.object({ ms: z.int(), id: z.string(), before: z.int().min(0) });
type Place = z.infer<typeof place>;
export const cursorOf = (at: Place): string => encodeCursor(at);
export const placeOf = (cursor: string): Place => decodeCursor(cursor, place);
