// The fields of a monitor that say when it alerts.
import type { ReactElement } from 'react';
import judges from '../judges/judges.module.css';
import { Choice, Typed } from './controls.tsx';
import { SEVERITIES } from './draft.ts';
import { unitWords } from './monitor_words.ts';
import type { DraftFieldsProps } from './query_fields.tsx';

const SIDES = [
  ['above', 'above'],
  ['below', 'below'],
] as const;

/** The fields. */
export function ThresholdFields({ draft, errors, views, onChange }: DraftFieldsProps): ReactElement {
  const unit = unitWords(views, draft.view, draft.measure);
  return (
    <div className={judges.fields}>
      <Choice
        label="Alerts when the value is"
        value={draft.side}
        options={SIDES}
        onChange={(side) => {
          onChange({ side: side === 'below' ? 'below' : 'above' });
        }}
      />
      <Typed
        label="Threshold"
        {...(unit === '' ? {} : { hint: `In ${unit}` })}
        error={errors['threshold'] ?? null}
        inputMode="decimal"
        maxLength={30}
        value={draft.limit}
        onChange={(limit) => {
          onChange({ limit });
        }}
      />
      <Typed
        label="Over the last minutes"
        error={errors['window_minutes'] ?? null}
        inputMode="numeric"
        maxLength={4}
        value={draft.window}
        onChange={(window) => {
          onChange({ window });
        }}
      />
      <Typed
        label="For at least, in minutes"
        hint="0 alerts at once"
        error={errors['for_minutes'] ?? null}
        inputMode="numeric"
        maxLength={4}
        value={draft.lasts}
        onChange={(lasts) => {
          onChange({ lasts });
        }}
      />
      <Choice
        label="Severity"
        value={draft.severity}
        options={SEVERITIES.map((one) => [one, one])}
        onChange={(name) => {
          onChange({ severity: SEVERITIES.find((one) => one === name) ?? 'warning' });
        }}
      />
    </div>
  );
}
