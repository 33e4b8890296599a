// The time range of a list: the last hours or days, or two times that somebody enters.
import { type ReactElement, type Ref, useCallback, useState } from 'react';
import { copyFixedLink, useFixedLink } from '../shell/page_link.ts';
import { usePreferences } from '../shell/preferences.ts';
import { fullTime, listTime, zoneName } from '../text/format_time.ts';
import { Button } from '../ui/button.tsx';
import { Dialog } from '../ui/dialog.tsx';
import { Menu } from '../ui/menu.tsx';
import { fieldTime, timeOfField } from './field_time.ts';
import { withFixedTimes } from './fixed_times.ts';
import { RANGES, type Range, type TimeRange } from './list_url.ts';
import styles from './time_menu.module.css';

const WORDS: Readonly<Record<Range, string>> = {
  '1h': 'Last hour',
  '6h': 'Last 6 hours',
  '24h': 'Last 24 hours',
  '7d': 'Last 7 days',
  '30d': 'Last 30 days',
  '90d': 'Last 90 days',
};

interface TimeMenuProps {
  time: TimeRange;
  onChange: (time: TimeRange) => void;
  /** The element around the button, which `t` opens. */
  ref?: Ref<HTMLSpanElement>;
}

/** A button with the range, and the menu that changes it. */
export function TimeMenu({ time, onChange, ref }: TimeMenuProps): ReactElement {
  const [entering, setEntering] = useState(false);
  const { zone } = usePreferences();
  const last = 'last' in time ? time.last : null;
  const fixedSearch = useCallback(() => withFixedTimes(location.search, last ?? '24h', Date.now()), [last]);
  useFixedLink(last === null ? null : fixedSearch);
  return (
    <span ref={ref}>
      <Menu
        label={`Time range: ${timeWords(time, zone)}`}
        icon="clock"
        align="end"
        items={[
          ...RANGES.map((range) => ({
            label: WORDS[range],
            ...(last === range ? { icon: 'check' as const } : {}),
            onSelect: () => {
              onChange({ last: range });
            },
          })),
          {
            label: 'From – to…',
            apart: true,
            onSelect: () => {
              setEntering(true);
            },
          },
          ...(last === null
            ? []
            : [
                {
                  label: 'Copy link with fixed times',
                  icon: 'link' as const,
                  aside: 'Y Y',
                  onSelect: () => {
                    void copyFixedLink();
                  },
                },
              ]),
        ]}
      >
        {timeWords(time, zone)}
      </Menu>
      {entering && (
        <TimeDialog
          time={time}
          zone={zone}
          onChange={onChange}
          onClose={() => {
            setEntering(false);
          }}
        />
      )}
    </span>
  );
}

/** Returns the words of a time range. */
export function timeWords(time: TimeRange, zone: 'local' | 'utc'): string {
  if ('last' in time) return WORDS[time.last];
  const now = Date.now();
  if (time.until === null) return `Since ${listTime(time.since, zone, now)}`;
  if (time.since === null) return `Until ${listTime(time.until, zone, now)}`;
  return `${listTime(time.since, zone, now)} – ${listTime(time.until, zone, now)}`;
}

interface TimeDialogProps {
  time: TimeRange;
  zone: 'local' | 'utc';
  onChange: (time: TimeRange) => void;
  onClose: () => void;
}

function TimeDialog({ time, zone, onChange, onClose }: TimeDialogProps): ReactElement {
  const fixed = 'last' in time ? { since: null, until: null } : time;
  const [since, setSince] = useState(fieldTime(fixed.since, zone));
  const [until, setUntil] = useState(fieldTime(fixed.until, zone));
  const read = { since: timeOfField(since, zone), until: timeOfField(until, zone) };
  const wrong =
    read.since === null && read.until === null
      ? 'Enter at least one of both times.'
      : read.since !== null && read.until !== null && read.since > read.until
        ? 'The start must be before the end.'
        : null;
  const submit = (): void => {
    if (wrong !== null) return;
    onChange(read);
    onClose();
  };
  return (
    <Dialog
      title="Time range"
      onClose={onClose}
      onSubmit={submit}
      footer={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button look="primary" type="submit" disabled={wrong !== null}>
            Show this time
          </Button>
        </>
      }
    >
      <div className={styles.fields}>
        <label>
          From
          <input
            type="datetime-local"
            step={1}
            value={since}
            onChange={(event) => {
              setSince(event.currentTarget.value);
            }}
          />
        </label>
        <label>
          To
          <input
            type="datetime-local"
            step={1}
            value={until}
            onChange={(event) => {
              setUntil(event.currentTarget.value);
            }}
          />
        </label>
        <p className={styles.hint} role="status">
          {wrong ?? `${fullTime(read.since, zone)} – ${fullTime(read.until, zone)}`}
        </p>
        <p className={styles.hint}>Times are in {zoneName(zone, Date.now())}. An empty field leaves that end open.</p>
      </div>
    </Dialog>
  );
}
