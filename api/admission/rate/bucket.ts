// A token bucket: refilled per_minute / 60 tokens a second up to its capacity, pure arithmetic on times that are handed in.
// Levels are whole numbers of 1/60,000 token, which is what a millisecond brings at one a minute: nothing is ever rounded, so
// a wait of exactly the seconds that a refusal names is always enough.

const UNITS_PER_TOKEN = 60_000;
const MS_PER_SECOND = 1000;

export interface Bucket {
  /** Tokens that flow in a minute; a whole number above 0. */
  per_minute: number;
  /** Tokens that it holds when full; a whole number above 0. */
  capacity: number;
  /** Units that it holds. Below 0 it is in debt: refill pays that off before anything is granted again. */
  level: number;
  /** Whole milliseconds of a monotonic clock up to which refill is counted. */
  at: number;
}

/** A full bucket. `now` in milliseconds of a monotonic clock, as everywhere in this file. */
export function fullBucket(per_minute: number, capacity: number, now: number): Bucket {
  return { per_minute, capacity, level: capacity * UNITS_PER_TOKEN, at: Math.floor(now) };
}

/** Lets in what has flowed since it was last looked at. A time before that lets in nothing. */
export function refill(bucket: Bucket, now: number): void {
  const at = Math.floor(now);
  if (at <= bucket.at) return;
  bucket.level = Math.min(bucket.capacity * UNITS_PER_TOKEN, bucket.level + (at - bucket.at) * bucket.per_minute);
  bucket.at = at;
}

/**
 * Takes `cost` tokens, or nothing; false when it does not hold enough. A cost above the capacity could never be met: it is
 * granted when the bucket is full, and what it took too much is a debt. So nobody is locked out by the size of a batch, and
 * over any time t no more is granted than capacity + rate · t + the largest such excess.
 */
export function take(bucket: Bucket, cost: number): boolean {
  if (bucket.level < needed(bucket, cost)) return false;
  debit(bucket, cost);
  return true;
}

/** Takes tokens that another process has granted already, into debt where it has to be. */
export function debit(bucket: Bucket, tokens: number): void {
  bucket.level -= tokens * UNITS_PER_TOKEN;
}

/** Whole seconds, 0 or more, after which `cost` would be granted if nothing else were taken. */
export function secondsUntilGranted(bucket: Bucket, cost: number): number {
  return secondsUntilLevel(bucket, needed(bucket, cost));
}

/** Whole seconds, 0 or more, after which it is full if nothing is taken. */
export function secondsUntilFull(bucket: Bucket): number {
  return secondsUntilLevel(bucket, bucket.capacity * UNITS_PER_TOKEN);
}

/** Whole tokens that it holds; 0 in debt. */
export function remaining(bucket: Bucket): number {
  return Math.max(0, Math.floor(bucket.level / UNITS_PER_TOKEN));
}

/** Units that are missing until it is full. */
export function missing(bucket: Bucket): number {
  return bucket.capacity * UNITS_PER_TOKEN - bucket.level;
}

/** Lowers the level, if need be, so that at least so many units are missing. */
export function leaveMissing(bucket: Bucket, units: number): void {
  bucket.level = Math.min(bucket.level, bucket.capacity * UNITS_PER_TOKEN - units);
}

/**
 * Gives it another rate and capacity. What a larger bucket holds more is there at once, a smaller one keeps what fits, and a
 * debt made at the old rate is forgiven: at a slower one it could last for long.
 */
export function rescale(bucket: Bucket, per_minute: number, capacity: number): void {
  const gained = Math.max(0, capacity - bucket.capacity) * UNITS_PER_TOKEN;
  bucket.level = Math.min(Math.max(0, bucket.level) + gained, capacity * UNITS_PER_TOKEN);
  bucket.per_minute = per_minute;
  bucket.capacity = capacity;
}

/** Units at which a cost is granted. */
function needed(bucket: Bucket, cost: number): number {
  return Math.min(cost, bucket.capacity) * UNITS_PER_TOKEN;
}

function secondsUntilLevel(bucket: Bucket, units: number): number {
  return Math.max(0, Math.ceil((units - bucket.level) / (bucket.per_minute * MS_PER_SECOND)));
}
