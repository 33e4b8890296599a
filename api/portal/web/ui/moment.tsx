// A moment in the zone that the person chose; the other form stands in the tooltip.
import type { ReactElement } from 'react';
import { usePreferences } from '../shell/preferences.ts';
import { NONE, relativeTime } from '../text/format.ts';
import { fullTime, listTime, millis, type Moment as At, timeOfDay } from '../text/format_time.ts';

interface MomentProps {
  at: At;
  /** `list`: time of day, with the day where it is another; `full`: with the zone; `ago`: how long ago. */
  form?: 'list' | 'time' | 'full' | 'ago';
}

/** A time element. */
export function Moment({ at, form = 'list' }: MomentProps): ReactElement {
  const { zone } = usePreferences();
  const ms = millis(at);
  if (ms === null) return <span>{NONE}</span>;
  const now = Date.now();
  const texts = {
    list: () => listTime(ms, zone, now),
    time: () => timeOfDay(ms, zone),
    full: () => fullTime(ms, zone),
    ago: () => relativeTime(ms, now),
  };
  const title = form === 'ago' ? fullTime(ms, zone) : `${fullTime(ms, zone)}, ${relativeTime(ms, now)}`;
  return (
    <time dateTime={new Date(ms).toISOString()} title={title}>
      {texts[form]()}
    </time>
  );
}
