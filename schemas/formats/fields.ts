// Fields that every ingest format has, and the bounds that keep whatever is accepted within what the store can hold.
// Bounds are ours, not the vendors': a value past them is no telemetry but a mistake, and is refused where it is sent.
import { z } from 'zod';
import { DURATION_MAX_MS, isoMillis } from './times.ts';

/** Any number of tokens that an event names: four of them added up still fit UInt32. */
export const TOKENS_MAX = 1_000_000_000;
/** cost_usd of one span: Decimal(18, 12) holds six digits before the point. */
const COST_MAX_USD = 999_999;
/** sandbox_seconds of one event. */
const SANDBOX_MAX_SECONDS = 1_000_000_000;
export const NAME_LENGTH_MAX = 1024;
const TAG_LENGTH_MAX = 256;
const TAGS_MAX = 256;
/** Traces are named in paths, where . and .. are no names. */
const ID_PATTERN = /^(?!\.{1,2}$)[A-Za-z0-9_.:-]{1,128}$/;
/** A non-negative decimal number as text, for money that must not pass through floating point. */
const DECIMAL_PATTERN = /^\d{1,12}(\.\d{1,30})?$/;

const optionalId = z
  .string()
  .regex(ID_PATTERN, { error: 'takes 1 to 128 of letters, digits, _ . : -, other than . and ..' })
  .nullish();
const time = z.string().refine((text) => !Number.isNaN(isoMillis(text)), {
  error: 'takes an ISO 8601 date and time, such as 2026-01-31T12:00:00.000Z',
});

/** A name: of a model, an event, a chain. */
export const name = z.string().min(1).max(NAME_LENGTH_MAX);
export const outcome = z.enum(['success', 'error', 'timeout']);
export const tokenCount = z.int().min(0).max(TOKENS_MAX).nullish();
export const optionalTime = time.nullish();
const optionalDuration = z.int().min(0).max(DURATION_MAX_MS).nullish();

const amount = (max: number) => {
  // On each check too: a union gives the words of the option whose type is right.
  const error = `takes a number from 0 to ${String(max)}`;
  return z.union(
    [
      z.number().min(0, { error }).max(max, { error }),
      z
        .string()
        .regex(DECIMAL_PATTERN, { error })
        .refine((text) => Number(text) <= max, { error }),
    ],
    { error },
  );
};

/** What money and budgets are computed from. */
const amounts = { cost_usd: amount(COST_MAX_USD).nullish(), sandbox_seconds: amount(SANDBOX_MAX_SECONDS).nullish() };

/** Free-form; only the amounts are checked. */
export const attributes = z.looseObject(amounts).nullish();

/** What all shapes take besides their own fields. null counts as absent, as SDKs send it for what they leave out. */
export const eventFields = {
  trace_id: optionalId,
  parent_span_id: optionalId,
  span_id: optionalId,
  tags: z.array(z.string().max(TAG_LENGTH_MAX)).max(TAGS_MAX).nullish(),
  attributes,
  // Fields beside the known ones join the attributes, so an amount counts there too.
  cost_usd: amounts.cost_usd.describe('The same as attributes.cost_usd, which goes ahead of it'),
  sandbox_seconds: amounts.sandbox_seconds.describe('The same as attributes.sandbox_seconds, which goes ahead of it'),
  started_at: optionalTime,
  ended_at: optionalTime,
  duration_ms: optionalDuration,
};

/** What a model call has: an outcome, and a duration unless both of its times say it. */
export const modelCallFields = { ...eventFields, outcome };

interface ModelCall {
  outcome: 'success' | 'error' | 'timeout';
  duration_ms?: number | null | undefined;
  started_at?: string | null | undefined;
  ended_at?: string | null | undefined;
  response?: unknown;
}

interface Issues {
  value: ModelCall;
  issues: { code: 'custom'; path: string[]; message: string; input: unknown }[];
}

/** The rules of a model call over several fields: it has a duration, and an answer unless it failed. */
export function checkModelCall(context: { value: ModelCall; issues: unknown[] }): void {
  const { value, issues } = context as Issues;
  if (value.duration_ms == null && (value.started_at == null || value.ended_at == null)) {
    issues.push({
      code: 'custom',
      path: ['duration_ms'],
      message: 'is required, or both started_at and ended_at',
      input: value,
    });
  }
  if (value.outcome === 'success' && value.response == null) {
    issues.push({ code: 'custom', path: ['response'], message: 'is required when outcome is success', input: value });
  }
}
