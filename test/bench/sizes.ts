// Decides which sizes of the store a run may fill, from the cost of earlier sizes: bytes of disk
// and seconds a span. Pure.
import { thousands } from './report.ts';

/**
 * Before the first measurement: the cost of a small store (1,180 B a span at 92,000 spans, 65 µs at
 * 10 million), rounded up.
 */
export const FIRST_GUESS: SizeCost = { bytes_per_span: 1200, seconds_per_span: 80e-6, read_seconds: 300 };
/** Parts are merged into new ones beside the old: the factor of disk that this takes. */
const MERGE_ROOM = 1.5;
/** Disk kept free: below a tenth, at most 2 GiB, the service rejects events. */
const DISK_LEFT_BYTES = 4 * 1024 ** 3;

export interface SizeCost {
  bytes_per_span: number;
  seconds_per_span: number;
  /** Seconds of all reads at one size. */
  read_seconds: number;
}

export interface SizeAsked {
  /** Spans in the store, and spans wanted. */
  have: number;
  want: number;
  cost: SizeCost;
  free_bytes: number;
  /** Seconds until the run's time ends; Infinity without a bound. */
  seconds_left: number;
}

const gigabytes = (bytes: number): string => `${(bytes / 1e9).toFixed(1)} GB`;
const minutes = (seconds: number): string => `${Math.max(0, Math.round(seconds / 60))} min`;

/** Returns why a size cannot be filled; null when it can. */
export function whyNot({ have, want, cost, free_bytes, seconds_left }: SizeAsked): string | null {
  const more = Math.max(0, want - have);
  const bytes = more * cost.bytes_per_span * MERGE_ROOM + DISK_LEFT_BYTES;
  if (bytes > free_bytes)
    return `needs ${gigabytes(bytes)} of free disk (${thousands(cost.bytes_per_span)} B a span, half as much again for merges, ${gigabytes(DISK_LEFT_BYTES)} left over); ${gigabytes(free_bytes)} are free`;
  const seconds = more * cost.seconds_per_span + cost.read_seconds;
  if (seconds > seconds_left) return `needs about ${minutes(seconds)}; ${minutes(seconds_left)} of --minutes are left`;
  return null;
}

/** Parses --sizes: numbers of spans, ascending, each once. @throws Error naming an invalid size */
export function parseSizes(text: string): number[] {
  const sizes = text.split(',').map((part) => {
    const size = Number(part);
    if (part.trim() === '' || !Number.isInteger(size) || size <= 0)
      throw new Error(`--sizes takes numbers of spans, such as 1e6,1e7; got ${part}`);
    return size;
  });
  return [...new Set(sizes)].sort((a, b) => a - b);
}
