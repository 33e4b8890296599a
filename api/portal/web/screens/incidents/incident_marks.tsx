// The signs of an incident: its state with its severity, in words and colour.
import type { ReactElement } from 'react';
import { Chip } from '../../ui/chip.tsx';
import type { Incident } from './incident_data.ts';

/** State and severity. */
export function StateMark({ incident: { status, severity } }: { incident: Incident }): ReactElement {
  if (status === 'resolved') return <Chip>Resolved</Chip>;
  return <Chip tone={severity === 'critical' ? 'error' : 'warn'}>Open, {severity}</Chip>;
}
