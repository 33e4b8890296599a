// The colour of a series, beside its name.
import type { ReactElement } from 'react';
import { cx } from '../ui/cx.ts';
import type { ColourToken } from './colours.ts';
import styles from './chart.module.css';

/** A square of the colour; the name stands beside it in words. A band is paler, as it is in the chart. */
export function Swatch({ colour, band = false }: { colour: ColourToken; band?: boolean }): ReactElement {
  return <span className={cx(styles.swatch, band && styles.band)} style={{ background: `var(--${colour})` }} />;
}
