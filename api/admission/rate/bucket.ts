// A token bucket, refilled with per_minute / 60 tokens a second up to its capacity. Pure
// arithmetic: callers pass the time. Levels are whole numbers of 1/60,000 token, which is what one
// millisecond brings at one token a minute. Nothing is ever rounded, so waiting for the seconds
// that a rejection names is always enough.

const UNITS_PER_TOKEN = 60_000;
const MS_PER_SECOND = 1000;

export interface Bucket {
  /** Tokens that flow in within a minute; a whole number above 0. */
  per_minute: number;
  /** Tokens of a full bucket; a whole number above 0. */
  capacity: number;
  /**
   * Units in the bucket. Below 0 the bucket is in debt: refill pays the debt before any token is
   * granted.
   */
  level: number;
  /** Whole milliseconds of a monotonic clock up to which refill is counted. */
  at: number;
}

/**
 * Returns a full bucket.
 * @param now milliseconds of a monotonic clock, as everywhere in this file
 */
export function fullBucket(per_minute: number, capacity: number, now: number): Bucket {
  return { per_minute, capacity, level: capacity * UNITS_PER_TOKEN, at: Math.floor(now) };
}

/** Adds what has flowed in since the last refill; nothing for a time before it. */
export function refill(bucket: Bucket, now: number): void {
  const at = Math.floor(now);
  if (at <= bucket.at) return;
  bucket.level = Math.min(bucket.capacity * UNITS_PER_TOKEN, bucket.level + (at - bucket.at) * bucket.per_minute);
  bucket.at = at;
}

/**
 * Takes `cost` tokens if the bucket has them, or nothing. A cost above the capacity is granted when
 * the bucket is full, and what it exceeds the capacity by becomes a debt; otherwise a large batch
 * could never be admitted. Over any time t the bucket grants at most capacity + rate · t + the
 * largest such excess.
 * @returns false when the bucket has too few tokens
 */
export function take(bucket: Bucket, cost: number): boolean {
  if (bucket.level < needed(bucket, cost)) return false;
  debit(bucket, cost);
  return true;
}

/** Takes tokens that another process has granted, into debt if need be. */
export function debit(bucket: Bucket, tokens: number): void {
  bucket.level -= tokens * UNITS_PER_TOKEN;
}

/** Returns the whole seconds, 0 or more, until `cost` is granted if nothing else is taken. */
export function secondsUntilGranted(bucket: Bucket, cost: number): number {
  return secondsUntilLevel(bucket, needed(bucket, cost));
}

/** Returns the whole seconds, 0 or more, until the bucket is full if nothing is taken. */
export function secondsUntilFull(bucket: Bucket): number {
  return secondsUntilLevel(bucket, bucket.capacity * UNITS_PER_TOKEN);
}

/** Returns the whole tokens in the bucket; 0 in debt. */
export function remaining(bucket: Bucket): number {
  return Math.max(0, Math.floor(bucket.level / UNITS_PER_TOKEN));
}

/** Returns the units that are missing until the bucket is full. */
export function missing(bucket: Bucket): number {
  return bucket.capacity * UNITS_PER_TOKEN - bucket.level;
}

/** Lowers the level, if need be, so that at least this many units are missing. */
export function leaveMissing(bucket: Bucket, units: number): void {
  bucket.level = Math.min(bucket.level, bucket.capacity * UNITS_PER_TOKEN - units);
}

/**
 * Changes rate and capacity. A larger bucket gains the difference at once, a smaller one keeps what
 * fits. A debt made at the old rate is forgiven, because paying it at a slower rate could take
 * long.
 */
export function rescale(bucket: Bucket, per_minute: number, capacity: number): void {
  const gained = Math.max(0, capacity - bucket.capacity) * UNITS_PER_TOKEN;
  bucket.level = Math.min(Math.max(0, bucket.level) + gained, capacity * UNITS_PER_TOKEN);
  bucket.per_minute = per_minute;
  bucket.capacity = capacity;
}

/** Returns the units at which a cost is granted. */
function needed(bucket: Bucket, cost: number): number {
  return Math.min(cost, bucket.capacity) * UNITS_PER_TOKEN;
}

function secondsUntilLevel(bucket: Bucket, units: number): number {
  return Math.max(0, Math.ceil((units - bucket.level) / (bucket.per_minute * MS_PER_SECOND)));
}
