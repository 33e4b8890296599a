// The operator's routes of dead letters: events and messages that the pipeline could not process, oldest first. They
// are shown, replayed through the ingest log, and deleted.
import { z } from 'zod';
import {
  deleteLetter,
  isReplayable,
  nextLetter,
  NotReplayable,
  readLetter,
  replayLetter,
  type StoredLetter,
} from '../../../ops/exchange/dead_letters.ts';
import type { Log } from '../../../ops/platform/nats/open_log.ts';
import { DEAD_LETTERS_STREAM } from '../../../schemas/streams.ts';
import { ApiError } from '../../http/errors.ts';
import { decodeCursor, encodeCursor, limitParam } from '../../http/pagination.ts';
import { defineOperatorRoute, type Route } from '../../http/route.ts';

export interface DeadLettersDeps {
  log: Pick<Log, 'js' | 'jsm' | 'bucket' | 'streams'>;
  connected: () => boolean;
}

const TAG = 'Operator';
/** Letters, and bytes of their bodies, that one request reads to find those of an organization. */
const SCANNED_MAX = 1000;
const SCANNED_BYTES_MAX = 64 * 1024 * 1024;
/** Bytes of a body that are shown. */
const SHOWN_BYTES_MAX = 256 * 1024;
const STAGE = /^[a-z0-9_-]{1,64}$/;

const letterItem = z
  .object({
    seq: z.int().describe('Identifies the letter'),
    died_at: z.iso.datetime(),
    stage: z.string().describe('Stage of the pipeline, or queue, that could not process it'),
    reason: z.string(),
    detail: z.string().describe('The error as the stage saw it'),
    org_id: z.string().nullable().describe('null where the letter is not that of one event'),
    format: z.string().nullable(),
    event_id: z.string().nullable(),
    trace_id: z.string().nullable(),
    received_at: z.iso.datetime().nullable(),
    body_bytes: z.int().describe('Bytes of the whole body'),
    replayable: z.boolean().describe('True for the letter of an event'),
  })
  .meta({ id: 'DeadLetter' });

const wholeLetter = letterItem
  .extend({
    body: z.string().describe(`The body as text, at most ${SHOWN_BYTES_MAX / 1024} KiB of it`),
    body_complete: z.boolean().describe('False where the letter holds, or this response shows, only a part'),
  })
  .meta({ id: 'DeadLetterWithBody' });

const params = z.object({
  seq: z
    .string()
    .regex(/^[1-9]\d{0,15}$/, { error: 'must be the seq of a dead letter' })
    .transform(Number),
});
const replayed = z.object({ seq: z.int(), event_id: z.string(), org_id: z.string(), replayed: z.literal(true) });

export function deadLetterRoutes(deps: DeadLettersDeps): Route[] {
  return [listRoute(deps), getRoute(deps), replayRoute(deps), deleteRoute(deps)];
}

function listRoute(deps: DeadLettersDeps): Route {
  return defineOperatorRoute({
    method: 'get',
    path: '/admin/dead-letters',
    operation_id: 'listDeadLetters',
    summary: 'List dead letters',
    description: `Returns events and messages that the pipeline could not process, oldest first. With \`org_id\`, a request looks through at most ${SCANNED_MAX} letters, so a page can be short, or empty, and still have a next one.`,
    tag: TAG,
    query: z.object({
      limit: limitParam,
      cursor: z.string().max(100).optional().describe('meta.next_cursor of the previous page'),
      stage: z.string().regex(STAGE, { error: 'must be the name of a stage' }).optional(),
      org_id: z.string().min(1).max(128).optional(),
    }),
    response: z.array(letterItem),
    meta: z.object({
      total: z.int().describe('Dead letters of the service'),
      next_cursor: z.string().nullable().describe('null on the last page'),
    }),
    errors: ['upstream_unavailable'],
    handler: async ({ query, signal }) => {
      checkConnected(deps);
      const from = query.cursor === undefined ? 1 : decodeCursor(query.cursor, z.int().min(1));
      const { state } = await deps.log.jsm.streams.info(DEAD_LETTERS_STREAM);
      const { found, next } = await lettersFrom(deps, from, query, signal);
      return {
        data: found.map(itemOf),
        meta: { total: state.messages, next_cursor: next === null ? null : encodeCursor(next) },
      };
    },
  });
}

/** Returns a page of letters, and the sequence at which the next one begins; null on the last page. */
async function lettersFrom(
  { log }: DeadLettersDeps,
  from: number,
  { limit, stage, org_id }: { limit: number; stage?: string | undefined; org_id?: string | undefined },
  signal: AbortSignal,
): Promise<{ found: StoredLetter[]; next: number | null }> {
  const found: StoredLetter[] = [];
  let next = from;
  let bytes = 0;
  for (let scanned = 0; scanned < SCANNED_MAX && bytes < SCANNED_BYTES_MAX && !signal.aborted; scanned++) {
    const letter = await nextLetter(log, next, stage);
    if (letter === null) return { found, next: null };
    if (found.length === limit) return { found, next: letter.seq };
    next = letter.seq + 1;
    bytes += letter.letter.body.length;
    if (org_id === undefined || letter.letter.org_id === org_id)
      found.push({ ...letter, letter: { ...letter.letter, body: NONE }, bodyBytes: bytesOf(letter) });
  }
  return { found, next };
}

/** A page of letters holds no bodies, which may have megabytes each. */
const NONE = Buffer.alloc(0);
const bytesOf = ({ letter, bodyBytes }: StoredLetter): number => bodyBytes ?? letter.body.length;

function itemOf(letterOf: StoredLetter) {
  const { letter } = letterOf;
  const ofEvent = isReplayable(letterOf);
  return {
    seq: letterOf.seq,
    died_at: new Date(letter.died_at).toISOString(),
    stage: letter.stage,
    reason: letter.reason,
    detail: letter.detail,
    org_id: ofEvent ? letter.org_id : null,
    format: ofEvent ? letter.format : null,
    event_id: ofEvent ? `evt_${letter.event_hex}` : null,
    trace_id: ofEvent ? letter.trace_id : null,
    received_at: ofEvent ? new Date(letter.received_at).toISOString() : null,
    body_bytes: bytesOf(letterOf),
    replayable: ofEvent,
  };
}

function getRoute(deps: DeadLettersDeps): Route {
  return defineOperatorRoute({
    method: 'get',
    path: '/admin/dead-letters/:seq',
    operation_id: 'getDeadLetter',
    summary: 'Get a dead letter with its body',
    tag: TAG,
    params,
    response: wholeLetter,
    errors: ['not_found', 'upstream_unavailable'],
    handler: async ({ params: { seq } }) => {
      const found = await letterAt(deps, seq);
      const { body } = found.letter;
      return {
        data: {
          ...itemOf(found),
          body: body.subarray(0, SHOWN_BYTES_MAX).toString('utf8'),
          body_complete: found.bodyBytes === null && body.length <= SHOWN_BYTES_MAX,
        },
      };
    },
  });
}

function replayRoute(deps: DeadLettersDeps): Route {
  return defineOperatorRoute({
    method: 'post',
    path: '/admin/dead-letters/:seq/replay',
    operation_id: 'replayDeadLetter',
    summary: 'Replay a dead letter',
    description:
      'Sends the event through the ingest log again, unchanged and with the same id, and deletes the letter. An event that still cannot be processed becomes a new dead letter. Returns 409 `conflict` for a letter that is not that of an event, or whose event neither the letter nor the log holds whole.',
    tag: TAG,
    audit: { action: 'dead_letter.replay', target: 'dead_letter' },
    params,
    response: replayed,
    errors: ['not_found', 'conflict', 'upstream_unavailable'],
    handler: async ({ params: { seq }, audit }) => {
      const found = await letterAt(deps, seq);
      const { org_id, event_hex, stage, reason } = found.letter;
      if (org_id !== '') audit.org(org_id);
      audit.target(String(seq));
      const event_id = `evt_${event_hex}`;
      audit.changes({ event_id, stage, reason });
      try {
        await replayLetter(deps.log, found);
      } catch (error) {
        if (error instanceof NotReplayable) throw new ApiError('conflict', sentence(error.message));
        throw unreachable(error);
      }
      return { data: { seq, event_id, org_id, replayed: true as const } };
    },
  });
}

function deleteRoute(deps: DeadLettersDeps): Route {
  return defineOperatorRoute({
    method: 'delete',
    path: '/admin/dead-letters/:seq',
    operation_id: 'deleteDeadLetter',
    summary: 'Delete a dead letter',
    description: 'Deletes the letter and overwrites it on disk. Its event is lost unless the sender sends it again.',
    tag: TAG,
    audit: { action: 'dead_letter.delete', target: 'dead_letter' },
    params,
    response: z.object({ seq: z.int(), deleted: z.literal(true) }),
    errors: ['not_found', 'upstream_unavailable'],
    handler: async ({ params: { seq }, audit }) => {
      const { letter } = await letterAt(deps, seq);
      if (letter.org_id !== '') audit.org(letter.org_id);
      audit.target(String(seq));
      audit.changes({ stage: letter.stage, reason: letter.reason });
      await deleteLetter(deps.log, seq).catch((error: unknown) => {
        throw unreachable(error);
      });
      return { data: { seq, deleted: true as const } };
    },
  });
}

/** @throws ApiError not_found, upstream_unavailable */
async function letterAt(deps: DeadLettersDeps, seq: number): Promise<StoredLetter> {
  checkConnected(deps);
  const found = await readLetter(deps.log, seq).catch((error: unknown) => {
    throw unreachable(error);
  });
  if (found === null)
    throw new ApiError('not_found', 'There is no dead letter of this seq. It may have been replayed.');
  return found;
}

function checkConnected({ connected }: DeadLettersDeps): void {
  if (!connected()) throw unreachable(undefined);
}

const unreachable = (cause: unknown): ApiError =>
  new ApiError('upstream_unavailable', 'The stream of dead letters cannot be reached. Try again.', { cause });

const sentence = (text: string): string => `${text.charAt(0).toUpperCase()}${text.slice(1)}.`;
