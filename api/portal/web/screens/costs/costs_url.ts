// The state of the cost pages in the address: the days that are shown and the dimension that they are
// split by, with the API's names. Pure.
import { codec, type Field, optionalChoice, text } from '../../url/search_params.ts';

/** Dimensions of GET /v1/cost/series. */
export const DIMENSIONS = ['model', 'agent_id', 'department', 'realm'] as const;
export type Dimension = (typeof DIMENSIONS)[number];

export const DAYS_MIN = 7;
export const DAYS_MAX = 365;
const DAYS_DEFAULT = 30;

const days: Field<number> = {
  parse: (raw) => {
    const value = /^\d{1,3}$/.test(raw) ? Number(raw) : Number.NaN;
    return value >= DAYS_MIN && value <= DAYS_MAX ? value : undefined;
  },
  write: String,
  fallback: DAYS_DEFAULT,
};

export const costsUrl = codec({
  days,
  /** Null: the dimension that the person chose last. */
  group_by: optionalChoice(DIMENSIONS),
  /** The resource whose use the forecast shows; none: the first with a limit. */
  resource: text(),
  /** Settings of anomalies that are tried out, as they are typed. */
  z_threshold: text(),
  lookback_days: text(),
});
