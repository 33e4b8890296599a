// One number of the home page: its value, its change against the day before, and a line of the last
// 24 hours. The whole tile is a link to the traces behind it.
import type { ReactElement } from 'react';
import { Link } from 'wouter';
import { RequestError } from '../../client/error.ts';
import { Sparkline } from '../../lists/sparkline.tsx';
import { NONE, percent } from '../../text/format.ts';
import { Icon } from '../../ui/icons.tsx';
import styles from './home.module.css';

interface TileProps {
  label: string;
  href: string;
  value: string;
  /** Exact value, for the tooltip. */
  title?: string;
  /** A few words below the number on how it is meant. */
  note?: string;
  /** Change against the day before; absent where `words` say more. */
  change?: number | null;
  /** True if a rise is bad news; false if neither is. */
  risingIsBad?: boolean;
  /** In the place of the change. */
  words?: string;
  /** True if the words are bad news. */
  isBad?: boolean;
  /** Absent: the tile has no line. */
  values?: readonly (number | null)[];
  /** Time of the line. */
  period?: string;
  tone?: 'plain' | 'error';
  error: unknown;
  /** True until the numbers of both days are there. */
  loading: boolean;
}

/** The tile. */
export function Tile({
  label,
  href,
  value,
  title,
  note,
  change = null,
  risingIsBad = false,
  words,
  isBad = false,
  values,
  period = '24 hours',
  tone = 'plain',
  error,
  loading,
}: TileProps): ReactElement {
  const failed = error !== null && error !== undefined;
  return (
    <Link href={href} className={styles.tile} aria-busy={loading}>
      <span className={styles.label}>{label}</span>
      <span className={styles.value} title={title}>
        {failed ? NONE : loading ? '\u00a0' : value}
      </span>
      {note !== undefined && !failed && !loading && <span className={styles.label}>{note}</span>}
      <span className={styles.change} data-bad={isBad || (risingIsBad && change !== null && change > 0.005)}>
        {failed ? whyWords(error) : loading ? null : (words ?? changeWords(change))}
      </span>
      {values !== undefined && (
        <span className={styles.spark}>
          <Sparkline values={values} label={`${label} over the last ${period}`} tone={tone} />
        </span>
      )}
    </Link>
  );
}

/** Returns why the number is missing. */
const whyWords = (error: unknown): string =>
  error instanceof RequestError ? error.detail : 'The number could not be loaded.';

function changeWords(change: number | null): ReactElement {
  if (change === null) return <>No day before to compare with</>;
  if (Math.abs(change) < 0.005) return <>As the day before</>;
  return (
    <>
      <Icon name={change > 0 ? 'plus' : 'minus'} size={12} />
      {percent(Math.abs(change))} against the day before
    </>
  );
}
