// Records of Langfuse's older protocol: the messages of the stream LANGFUSE, which hold the events of
// one trace that one request brought, and the state of each trace's folding in KV.
import { hash } from 'node:crypto';
import { z } from 'zod';
import { orgKey } from './org.ts';

/** Maximum ids that the state of a trace remembers, the newest ones. */
export const KNOWN_MAX = 1000;

export const langfuseItem = z.object({
  id: z.string(),
  type: z.string(),
  timestamp: z.string(),
  body: z.record(z.string(), z.unknown()),
  /** Milliseconds since the epoch. */
  received_at: z.number(),
});

export const langfuseMessage = z.object({ org_id: z.string(), trace_id: z.string(), items: z.array(langfuseItem) });
export type LangfuseMessage = z.infer<typeof langfuseMessage>;

export const langfuseFold = z.object({
  org_id: z.string(),
  /** Sequence of the last message that has become spans. */
  done: z.int(),
  /**
   * Sequence of the last message of the fold under way. It is written before the fold, so that a
   * worker that takes over folds the same messages again.
   */
  plan: z.int(),
  /** Ids that have become spans. */
  known: z.array(z.string()),
});
export type LangfuseFold = z.infer<typeof langfuseFold>;

/** Returns the name of a trace in subjects and keys. */
export const traceToken = (trace_id: string): string => hash('sha256', trace_id, 'base64url').slice(0, 22);

/** Returns the key of a trace's state. */
export const foldKey = (org_id: string, trace_id: string): string => `${orgKey(org_id)}.${traceToken(trace_id)}`;
