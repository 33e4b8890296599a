// The state of a monitor or of a group: a chip with its word. Alerts stand out, the others do not.
import type { ReactElement } from 'react';
import { Chip } from '../../ui/chip.tsx';
import type { Monitor } from './draft.ts';

type State = Monitor['state'];

export const STATES: Readonly<Record<State, string>> = {
  alerting: 'Alerting',
  error: 'Not evaluated',
  no_data: 'No data',
  ok: 'OK',
  disabled: 'Disabled',
};
const TONES: Readonly<Record<State, 'plain' | 'ok' | 'warn' | 'error'>> = {
  alerting: 'error',
  error: 'warn',
  no_data: 'plain',
  ok: 'ok',
  disabled: 'plain',
};

/** The chip. */
export function StateMark({ state }: { state: State }): ReactElement {
  return <Chip tone={TONES[state]}>{STATES[state]}</Chip>;
}

/** Returns true while notifications of new alerts are held back. */
export const isMuted = ({ muted_until }: Pick<Monitor, 'muted_until'>, now: number): boolean =>
  muted_until !== null && Date.parse(muted_until) > now;
