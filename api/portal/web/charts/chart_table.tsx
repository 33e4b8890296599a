// The numbers of a chart as a table, for people who read numbers rather than shapes.
import type { ReactElement } from 'react';
import styles from '../lists/histogram.module.css';
import numbers from '../ui/number_table.module.css';
import { type ChartContent, isStacked, totalAt } from './chart_shape.ts';

interface ChartTableProps {
  name: string;
  /** Name of the column of points: Day (UTC). */
  axis: string;
  content: ChartContent;
  format: (value: number | null) => string;
  /** All digits of a value, for the tooltip. */
  exact: (value: number | null) => string;
}

/** The table, in a region that scrolls. */
export function ChartTable({ name, axis, content, format, exact }: ChartTableProps): ReactElement {
  const { points, series, bands = [], marks = [], limits = [] } = content;
  const hasTotal = series.filter(isStacked).length > 1;
  const columns = [
    ...(hasTotal ? [{ label: 'Total', values: points.map((_, at) => totalAt(series, at)) }] : []),
    ...series,
    ...bands.flatMap(({ label, low, high }) => [
      { label: `${label}, lower end`, values: low },
      { label: `${label}, upper end`, values: high },
    ]),
  ];
  const notes = new Map(
    points.map((_, at) => [at, marks.filter((mark) => mark.at === at).map(({ kind, label }) => `${kind}: ${label}`)]),
  );
  return (
    <div className={styles.region} role="region" aria-label={name} tabIndex={0}>
      <table className={numbers.table}>
        <caption>{[name, ...limits.map(({ label, value }) => `${label}: ${format(value)}`)].join('. ')}</caption>
        <thead>
          <tr>
            <th scope="col">{axis}</th>
            {columns.map(({ label }, at) => (
              <th key={at} scope="col">
                {label}
              </th>
            ))}
            {marks.length > 0 && <th scope="col">Marks</th>}
          </tr>
        </thead>
        <tbody>
          {points.map((point, at) => (
            <tr key={point}>
              <th scope="row">{point}</th>
              {columns.map(({ values }, column) => (
                <td key={column} title={exact(values[at] ?? null)}>
                  {format(values[at] ?? null)}
                </td>
              ))}
              {marks.length > 0 && <td>{notes.get(at)?.join(', ')}</td>}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
