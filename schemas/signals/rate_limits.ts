// Rate limits that the API processes share. Each process publishes the tokens that it granted to
// the subject with its id, and asks the others for the state of their buckets when it starts or
// reconnects. Rows are tuples, as field names would be most of a message.
import { z } from 'zod';

const SPENT_SUBJECT = 'limits.spent';
/**
 * Subject of the tokens that one process granted: its own messages are recognized without being
 * parsed.
 */
export const spentSubject = (process_id: string): string => `${SPENT_SUBJECT}.${process_id}`;
/**
 * Request for the state of the others' buckets, which carries the asker's own state; the reply has
 * the same shape.
 */
export const LIMIT_STATE_SUBJECT = 'limits.state';

/** Maximum number of tenants in one message of grants: below 1 MiB with the longest names. */
export const SPENT_TENANTS_MAX = 1000;
/** Maximum number of tenants in a state: below 4 MiB with the longest names. */
export const STATE_TENANTS_MAX = 5000;
/**
 * Maximum length of a tenant's name; a tenant with a longer one, which no organization has, is
 * limited by each process alone.
 */
export const TENANT_LENGTH_MAX = 256;

const kind = z.enum(['ingest', 'api', 'app', 'backfill']);
const tenant = z.string().min(1).max(TENANT_LENGTH_MAX);
/** Kind, tenant, and tokens granted, or units missing from the bucket. */
const limitRow = z.tuple([kind, tenant, z.int().min(1)]);
export type LimitRow = z.infer<typeof limitRow>;

export const spentShape = z.array(limitRow).max(SPENT_TENANTS_MAX);
export const limitStateShape = z.array(limitRow).max(STATE_TENANTS_MAX);
