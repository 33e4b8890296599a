// The shortcuts that work on every page of the operator.
import { navigate } from 'wouter/use-browser-location';
import { copyText } from '../../ui/copy_button.tsx';
import { toast } from '../../ui/toast.tsx';
import { type KeyBinding, RANK, useKeys } from '../../shell/keys.ts';
import { pageCurl } from '../../shell/page_request.ts';
import { preferences, setPreferences } from '../../shell/preferences.ts';
import { SECTIONS } from './sections.ts';

/** Registers the shortcuts. */
export function useOperatorKeys(showKeys: () => void): void {
  useKeys(
    'Everywhere',
    [
      { keys: '?', label: 'Show the shortcuts of this page', run: showKeys },
      { keys: 'y', label: 'Copy the request of this page as curl', run: copyCurl },
      { keys: 'u', label: 'Switch between local times and UTC', run: switchZone },
      ...SECTIONS.map(({ id, title, key }): KeyBinding => ({
        keys: `g ${key}`,
        label: `Go to ${title}`,
        run: () => {
          navigate(`/operator/${id}`);
        },
      })),
    ],
    RANK.frame,
  );
}

function switchZone(): void {
  setPreferences({ zone: preferences().zone === 'utc' ? 'local' : 'utc' });
}

function copyCurl(): void {
  const line = pageCurl();
  if (line === null) return;
  void copyText(line).then((copied) => {
    toast(copied ? { text: 'The curl line is copied.' } : { tone: 'error', text: 'The browser refused to copy.' });
  });
}
