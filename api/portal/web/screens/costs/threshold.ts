// Reads the settings of anomalies as people type them. Pure.

/** Settings as the API takes them. */
export interface Threshold {
  z_threshold: number;
  lookback_days: number;
}

interface ReadThreshold {
  /** Null while a field is not accepted, or before the saved settings are known. */
  value: Threshold | null;
  /** True if the value differs from what is saved. */
  changed: boolean;
  errors: { z_threshold: string | null; lookback_days: string | null };
}

const Z_MAX = 99;
const LOOKBACK = [7, 365] as const;
const NUMBER = /^\d{1,3}(\.\d{1,6})?$/;

/** Returns the settings that two texts mean; an empty text keeps what is saved. */
export function readThreshold(
  typed: Readonly<Record<keyof Threshold, string>>,
  saved: Threshold | undefined,
): ReadThreshold {
  const numberOf = (name: keyof Threshold): number => {
    const text = typed[name].trim();
    if (text === '') return saved?.[name] ?? Number.NaN;
    return NUMBER.test(text) ? Number(text) : Number.NaN;
  };
  const [z_threshold, lookback_days] = [numberOf('z_threshold'), numberOf('lookback_days')];
  const isZ = z_threshold > 0 && z_threshold <= Z_MAX;
  const isLookback = Number.isInteger(lookback_days) && lookback_days >= LOOKBACK[0] && lookback_days <= LOOKBACK[1];
  return {
    value: isZ && isLookback ? { z_threshold, lookback_days } : null,
    changed: z_threshold !== saved?.z_threshold || lookback_days !== saved.lookback_days,
    errors: {
      z_threshold: saved === undefined || isZ ? null : `Must be a number above 0 and at most ${Z_MAX}.`,
      lookback_days:
        saved === undefined || isLookback ? null : `Must be a whole number from ${LOOKBACK[0]} to ${LOOKBACK[1]}.`,
    },
  };
}
