// The mark of Millrace: a narrow channel that leads water to a wheel.
import type { ReactElement } from 'react';

/** The mark, in the accent colour. */
export function Mark(): ReactElement {
  return (
    <svg
      width={24}
      height={24}
      viewBox="0 0 24 24"
      fill="none"
      stroke="var(--accent)"
      strokeWidth={2}
      aria-hidden="true"
    >
      <path d="M1 4h11M1 8h6" strokeLinecap="round" />
      <circle cx={15} cy={14} r={7} />
      <path d="M15 7v14M8 14h14" />
    </svg>
  );
}
