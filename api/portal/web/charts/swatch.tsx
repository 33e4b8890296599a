// The colour of a series, beside its name.
import type { ReactElement } from 'react';
import type { ColourToken } from './colours.ts';
import styles from './chart.module.css';

/** A square of the colour; the name stands beside it in words. */
export function Swatch({ colour }: { colour: ColourToken }): ReactElement {
  return <span className={styles.swatch} style={{ background: `var(--${colour})` }} />;
}
