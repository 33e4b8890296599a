// The places of a gauge, as shares of its width. Pure.

export interface GaugeValues {
  used: number;
  /** Use at the end of the period at the rate so far. */
  projected: number;
  soft_limit: number | null;
  hard_limit: number | null;
}

export interface GaugeShape {
  used: number;
  projected: number;
  soft: number | null;
  hard: number | null;
}

/** Share of the width at which the larger of limits and use stands, so that its tick is seen. */
const LARGEST = 0.98;
/** A run rate beyond this many times the limits and the use would hide them; it is cut there. */
const RATE_MAX = 1.5;

/** Returns the places. Without a limit the scale ends with the run rate. */
export function gaugeOf({ used, projected, soft_limit, hard_limit }: GaugeValues): GaugeShape {
  const largest = Math.max(used, soft_limit ?? 0, hard_limit ?? 0);
  const isLimited = soft_limit !== null || hard_limit !== null;
  const end = isLimited ? Math.max(largest, Math.min(projected, largest * RATE_MAX)) : Math.max(used, projected);
  const place = (value: number): number => (end === 0 ? 0 : Math.min(1, Math.max(0, (value / end) * LARGEST)));
  return {
    used: place(used),
    projected: place(Math.min(projected, end)),
    soft: soft_limit === null ? null : place(soft_limit),
    hard: hard_limit === null ? null : place(hard_limit),
  };
}
