// Fields that every ingest format has, with bounds that keep accepted values within what the store
// can hold. The bounds are the service's own, not the vendors': a value outside them is a mistake,
// and its request is rejected.
import { z } from 'zod';
import { DURATION_MAX_MS, isoMillis } from './times.ts';

/** Maximum of any number of tokens in an event: the sum of four still fits UInt32. */
export const TOKENS_MAX = 1_000_000_000;
/** Maximum cost_usd of one span: Decimal(18, 12) holds six digits before the point. */
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
  .regex(ID_PATTERN, { error: 'must be 1 to 128 of letters, digits, _ . : -, other than . and ..' })
  .nullish();
const time = z.string().refine((text) => !Number.isNaN(isoMillis(text)), {
  error: 'must be an ISO 8601 date and time, such as 2026-01-31T12:00:00.000Z',
});

/** Name of a model, an event or a chain. */
export const name = z.string().min(1).max(NAME_LENGTH_MAX);
export const outcome = z.enum(['success', 'error', 'timeout']);
export const tokenCount = z.int().min(0).max(TOKENS_MAX).nullish();
export const optionalTime = time.nullish();
const optionalDuration = z.int().min(0).max(DURATION_MAX_MS).nullish();

const amount = (max: number) => {
  // The message stands on each check too: for a union, zod reports the error of the option whose
  // type matches.
  const error = `must be a number from 0 to ${max}`;
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

/** Amounts that costs and budgets are computed from. */
const amounts = { cost_usd: amount(COST_MAX_USD).nullish(), sandbox_seconds: amount(SANDBOX_MAX_SECONDS).nullish() };

/** Free-form object; only its amounts are checked. */
export const attributes = z.looseObject(amounts).nullish();

/**
 * Fields that all shapes accept besides their own. null counts as absent, as SDKs send it for
 * fields that they leave out.
 */
export const eventFields = {
  trace_id: optionalId,
  parent_span_id: optionalId,
  span_id: optionalId,
  tags: z.array(z.string().max(TAG_LENGTH_MAX)).max(TAGS_MAX).nullish(),
  attributes,
  // Fields that are not known join the attributes, so an amount counts there too.
  cost_usd: amounts.cost_usd.describe('The same as attributes.cost_usd, and takes precedence over it'),
  sandbox_seconds: amounts.sandbox_seconds.describe(
    'The same as attributes.sandbox_seconds, and takes precedence over it',
  ),
  started_at: optionalTime,
  ended_at: optionalTime,
  duration_ms: optionalDuration,
};

/** Fields of a model call. Its duration may follow from its two times. */
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

/**
 * Checks the rules of a model call over several fields: it has a duration, and a response unless it
 * failed.
 */
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
