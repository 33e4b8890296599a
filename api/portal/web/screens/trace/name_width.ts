// The width of the names in the waterfall: a share of the window until the person sets one. It never
// takes more than three fifths of the waterfall, so that the bars keep their room.

export const NAME_PX_MIN = 120;
export const NAME_PX_MAX = 1200;
const STEP_PX = 16;

/** Returns the width within its bounds, in whole pixels. */
export const boundedWidth = (px: number): number => Math.round(Math.min(NAME_PX_MAX, Math.max(NAME_PX_MIN, px)));

/** Returns the width that a key gives; null for keys that change nothing. */
export function widthByKey(key: string, px: number): number | null {
  const widths: Readonly<Record<string, number>> = {
    ArrowLeft: px - STEP_PX,
    ArrowRight: px + STEP_PX,
    Home: NAME_PX_MIN,
    End: NAME_PX_MAX,
  };
  const width = widths[key];
  return width === undefined ? null : boundedWidth(width);
}

/** Returns the value of --name-width; undefined for the default of the style sheet. */
export const nameWidth = (px: number | null): string | undefined =>
  px === null ? undefined : `min(${boundedWidth(px)}px, 60cqi)`;
