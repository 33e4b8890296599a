// Preferences of the person in this browser: theme, density, zone of times, single-letter shortcuts.
import type { ReactElement } from 'react';
import { useSession } from '../../client/session.ts';
import pages from '../../shell/page.module.css';
import { type Preferences, setPreferences, usePreferences } from '../../shell/preferences.ts';
import { zoneName } from '../../text/format_time.ts';
import { Moment } from '../../ui/moment.tsx';
import styles from './me.module.css';

interface Choice<K extends keyof Preferences> {
  name: K;
  legend: string;
  hint: string;
  options: readonly { value: Preferences[K]; label: string }[];
}

const THEME: Choice<'theme'> = {
  name: 'theme',
  legend: 'Theme',
  hint: 'The theme of the system follows its setting for light and dark.',
  options: [
    { value: 'system', label: 'As the system' },
    { value: 'light', label: 'Light' },
    { value: 'dark', label: 'Dark' },
  ],
};
const DENSITY: Choice<'density'> = {
  name: 'density',
  legend: 'Rows of lists',
  hint: 'Dense rows are 28 pixels high, easy rows 36.',
  options: [
    { value: 'dense', label: 'Dense' },
    { value: 'easy', label: 'Easy' },
  ],
};
const LETTERS: Choice<'letter_keys'> = {
  name: 'letter_keys',
  legend: 'Shortcuts that are a single letter',
  hint: 'Turn them off if speech input or a slip of the hand triggers them. Shortcuts with Ctrl or ⌘ stay.',
  options: [
    { value: true, label: 'On' },
    { value: false, label: 'Off' },
  ],
};

/** The page. */
export default function MeScreen(): ReactElement {
  const session = useSession();
  const { zone } = usePreferences();
  const zones: Choice<'zone'> = {
    name: 'zone',
    legend: 'Times',
    hint: 'The shortcut u switches on every page. Days of costs are UTC everywhere.',
    options: [
      { value: 'local', label: `Local (${zoneName('local', Date.now())})` },
      { value: 'utc', label: 'UTC' },
    ],
  };
  return (
    <div className={pages.page}>
      <dl className={styles.facts}>
        <dt>Person</dt>
        <dd>{session.data?.email ?? session.data?.user_id}</dd>
        <dt>Session until</dt>
        <dd>
          <Moment key={zone} at={session.data?.expires_at} form="full" />
        </dd>
        <dt>Organizations</dt>
        <dd>{session.data?.orgs.map(({ name, role }) => `${name} (${role})`).join(', ')}</dd>
      </dl>
      <p className={styles.hint}>These preferences are kept in this browser.</p>
      <Choices choice={THEME} />
      <Choices choice={DENSITY} />
      <Choices choice={zones} />
      <Choices choice={LETTERS} />
    </div>
  );
}

function Choices<K extends keyof Preferences>({ choice }: { choice: Choice<K> }): ReactElement {
  const preferences = usePreferences();
  const { name, legend, hint, options } = choice;
  return (
    <fieldset className={styles.choice} aria-describedby={`${name}-hint`}>
      <legend>
        <h2>{legend}</h2>
      </legend>
      <div className={styles.options}>
        {options.map(({ value, label }) => (
          <label key={label} className={styles.option}>
            <input
              type="radio"
              name={name}
              checked={preferences[name] === value}
              onChange={() => {
                setPreferences({ [name]: value });
              }}
            />
            {label}
          </label>
        ))}
      </div>
      <p id={`${name}-hint`} className={styles.hint}>
        {hint}
      </p>
    </fieldset>
  );
}
