// The gauge of one limited resource: use as a bar, the run rate behind it, and a tick for each limit.
// The numbers stand beside it in words, so the picture is left out for screen readers.
import type { ReactElement } from 'react';
import { gaugeOf, type GaugeValues } from './gauge_shape.ts';

const COLOURS = { ok: 'var(--accent)', soft_exceeded: 'var(--warn)', hard_exceeded: 'var(--error)' } as const;

interface GaugeProps extends GaugeValues {
  status: keyof typeof COLOURS;
  height?: number;
}

/** The picture. */
export function Gauge({ status, height = 16, ...values }: GaugeProps): ReactElement {
  const { used, projected, soft, hard } = gaugeOf(values);
  return (
    <svg width="100%" height={height} aria-hidden="true">
      <rect y="4" width="100%" height={height - 8} rx="2" fill="var(--sunken)" stroke="var(--line)" />
      <rect y="4" width={at(projected)} height={height - 8} rx="2" fill="var(--accent-soft)" />
      <rect y="4" width={at(used)} height={height - 8} rx="2" fill={COLOURS[status]} />
      {soft !== null && <Tick at={at(soft)} from={2} to={height - 2} colour="var(--warn)" />}
      {hard !== null && <Tick at={at(hard)} from={0} to={height} colour="var(--error)" />}
    </svg>
  );
}

const at = (share: number): string => `${(share * 100).toFixed(2)}%`;

/** A line with an edge of the surface's colour, so that it is seen on a bar of its own colour. */
function Tick({ at: x, from, to, colour }: { at: string; from: number; to: number; colour: string }): ReactElement {
  return (
    <>
      <line x1={x} x2={x} y1={from} y2={to} stroke="var(--surface)" strokeWidth="6" />
      <line x1={x} x2={x} y1={from} y2={to} stroke={colour} strokeWidth="2" />
    </>
  );
}
