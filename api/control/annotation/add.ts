// Adds items to a queue: traces by id, or those of a list query, or a share of them. Items have ids
// made of their traces, so a repeated request, also after a crash in the middle, adds nothing twice.
import { hash } from 'node:crypto';
import { itemIdOf, type ItemRecord, type QueueRecord } from '../../../schemas/records/annotation.ts';
import { ApiError } from '../../http/errors.ts';
import type { TraceItem } from '../../http/trace_items.ts';
import { getQueue, type QueuesDeps } from './queues.ts';
import type { AddBody } from './schema.ts';

/** Maximum items of a queue and of an organization, and bytes of an organization's records. */
export const ITEMS_QUEUE_MAX = 5000;
export const ITEMS_ORG_MAX = 20_000;
export const ORG_BYTES_MAX = 16 * 1024 * 1024;
/** Maximum traces that a request for a share looks at. */
const LOOKED_MAX = 10_000;

export interface AddDeps extends QueuesDeps {
  /**
   * Returns the newest traces of a list query, at most `wanted`.
   * @throws ApiError invalid_request naming the parameter
   */
  tracesOf: (org_id: string, query: string, wanted: number, signal: AbortSignal) => Promise<TraceItem[]>;
  /** Returns those of the traces that exist. */
  tracesBy: (org_id: string, trace_ids: readonly string[], signal: AbortSignal) => Promise<TraceItem[]>;
}

export interface Added {
  added: number;
  already: number;
  missing: number;
  unpaired: number;
}

interface Chosen {
  /** The traces of each item. */
  items: TraceItem[][];
  missing: number;
  unpaired: number;
}

/** @throws ApiError not_found; invalid_request; conflict when a bound is reached */
export async function addItems(
  deps: AddDeps,
  org_id: string,
  queue_id: string,
  body: AddBody,
  signal: AbortSignal,
): Promise<Added> {
  const { annotations, now } = deps;
  const queue = getQueue(deps, org_id, queue_id);
  const { items: chosen, missing, unpaired } = await choose(deps, queue, body, signal);
  const added_ms = now();
  const items = chosen.map((traces, index): ItemRecord => {
    const ids = traces.map(({ trace_id }) => trace_id);
    return {
      kind: 'item',
      org_id,
      queue_id,
      item_id: itemIdOf(queue_id, ids),
      added_ms,
      index,
      traces: traces.map(({ trace_id, started_at }) => ({ trace_id, started_ms: Date.parse(started_at) })),
      leases: [],
      answers: [],
      round: 0,
      outbox: [],
    };
  });
  const fresh = items.filter(({ item_id }) => annotations.item(org_id, queue_id, item_id) === null);
  checkRoom(deps, queue, fresh);
  const added = await annotations.add(fresh);
  return { added, already: items.length - added, missing, unpaired };
}

async function choose(deps: AddDeps, queue: QueueRecord, body: AddBody, signal: AbortSignal): Promise<Chosen> {
  const isPairs = queue.mode === 'pairwise';
  if (body.trace_ids !== undefined) {
    const ids = [...new Set(body.trace_ids)];
    if (isPairs && ids.length % 2 === 1)
      throw new ApiError('invalid_request', 'trace_ids: a pairwise queue needs an even number of different traces');
    const found = new Map((await deps.tracesBy(queue.org_id, ids, signal)).map((trace) => [trace.trace_id, trace]));
    const wanted = isPairs ? inPairs(ids) : ids.map((id) => [id]);
    const items = wanted.map((group) => group.flatMap((id) => found.get(id) ?? []));
    const whole = items.filter((group, i) => group.length === wanted[i]?.length);
    return { items: whole, missing: ids.length - found.size, unpaired: found.size - whole.flat().length };
  }
  const { query = '', share, limit } = body;
  const looked = share === 1 ? limit : Math.min(LOOKED_MAX, Math.ceil((limit / share) * 1.2));
  const listed = await deps.tracesOf(queue.org_id, query, looked, signal);
  const sampled = listed.filter(({ trace_id }) => isInShare(queue.queue_id, trace_id, share)).slice(0, limit);
  if (!isPairs) return { items: sampled.map((trace) => [trace]), missing: 0, unpaired: 0 };
  // Two traces are worth comparing when they did the same task.
  const alike = [...Map.groupBy(sampled, taskOf).values()];
  const items = alike.flatMap((group) => inPairs(group.length % 2 === 0 ? group : group.slice(0, -1)));
  return { items, missing: 0, unpaired: sampled.length - items.length * 2 };
}

const taskOf = ({ agent_id, root_span_name }: TraceItem): string => JSON.stringify([agent_id, root_span_name]);

function inPairs<T>(all: readonly T[]): T[][] {
  return Array.from({ length: Math.floor(all.length / 2) }, (_, i) => all.slice(i * 2, i * 2 + 2));
}

/** Chooses by a hash, so that the same share of the same traces is the same every time. */
function isInShare(queue_id: string, trace_id: string, share: number): boolean {
  if (share === 1) return true;
  const place = Number.parseInt(hash('sha256', JSON.stringify([queue_id, trace_id]), 'hex').slice(0, 8), 16);
  return place / 2 ** 32 < share;
}

/** @throws ApiError conflict when a bound would be passed */
function checkRoom({ annotations }: AddDeps, { org_id, queue_id }: QueueRecord, fresh: readonly ItemRecord[]): void {
  const ofQueue = annotations.items(org_id, queue_id).length;
  const { items, bytes } = annotations.sizes(org_id);
  const more = fresh.reduce((sum, item) => sum + Buffer.byteLength(JSON.stringify(item)), 0);
  if (ofQueue + fresh.length > ITEMS_QUEUE_MAX)
    throw new ApiError('conflict', `A queue can have at most ${ITEMS_QUEUE_MAX} items; this one has ${ofQueue}.`);
  if (items + fresh.length > ITEMS_ORG_MAX)
    throw new ApiError('conflict', `The queues of an organization can have at most ${ITEMS_ORG_MAX} items together.`);
  if (bytes + more > ORG_BYTES_MAX)
    throw new ApiError('conflict', `The queues of an organization can hold at most ${ORG_BYTES_MAX} bytes together.`);
}
