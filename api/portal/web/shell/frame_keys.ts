// The shortcuts that work on every page.
import { navigate } from 'wouter/use-browser-location';
import { useOrganization } from '../client/session.ts';
import { copyText } from '../ui/copy_button.tsx';
import { toast } from '../ui/toast.tsx';
import { type KeyBinding, RANK, useKeys } from './keys.ts';
import { copyLink } from './page_link.ts';
import { pageCurl } from './page_request.ts';
import { preferences, setPreferences } from './preferences.ts';
import { toggleRail } from './rail_width.ts';
import { ORG_ROUTES } from './routes.tsx';
import { sectionsFor } from './sections.ts';

const PATHS: ReadonlySet<string> = new Set(ORG_ROUTES.map(({ path }) => path));

/** Registers the shortcuts of the frame. */
export function useFrameKeys(show: (layer: 'palette' | 'keys') => void): void {
  const { org_id, can } = useOrganization();
  const home = `/o/${encodeURIComponent(org_id)}`;
  const places = sectionsFor(PATHS, can)
    .flat()
    .flatMap(({ key, title, path }): KeyBinding[] =>
      key === null
        ? []
        : [
            {
              keys: `g ${key}`,
              label: `Go to ${title}`,
              silent: true,
              run: () => {
                navigate(home + path);
              },
            },
          ],
    );
  useKeys('Everywhere', [...commands(home, show), ...places], RANK.frame);
}

function commands(home: string, show: (layer: 'palette' | 'keys') => void): KeyBinding[] {
  return [
    {
      keys: ['Mod+k'],
      label: 'Show commands and pages',
      silent: true,
      run: () => {
        show('palette');
      },
    },
    {
      keys: '?',
      label: 'Show the shortcuts of this page',
      run: () => {
        show('keys');
      },
    },
    {
      keys: '/',
      label: 'Go to the search field',
      run: () => {
        const field = document.querySelector<HTMLElement>('[data-search-field]');
        if (field === null) navigate(`${home}/search`);
        else field.focus();
      },
    },
    { keys: 'y', label: 'Copy the request of this page as curl', run: copyCurl },
    {
      keys: 'Y',
      label: 'Copy the address of this page; a second time, with fixed times',
      run: () => {
        void copyLink();
      },
    },
    {
      keys: 'u',
      label: 'Switch between local times and UTC',
      run: () => {
        setPreferences({ zone: preferences().zone === 'utc' ? 'local' : 'utc' });
      },
    },
    {
      keys: '[',
      label: 'Make the rail narrow or wide',
      run: toggleRail,
    },
    { keys: 'Escape', label: 'Leave the field, or go one level up', silent: true, run: leave },
  ];
}

function copyCurl(): void {
  const line = pageCurl();
  if (line === null) toast({ text: 'This page has no request of its own.' });
  else
    void copyText(line).then((copied) => {
      toast(copied ? { text: 'The curl line is copied.' } : { tone: 'error', text: 'The browser refused to copy.' });
    });
}

/** Leaves the field that has the focus; without one, goes to the page above. */
function leave(): void {
  const { activeElement } = document;
  if (activeElement instanceof HTMLElement && activeElement.matches('input, textarea, select')) {
    activeElement.blur();
    return;
  }
  const parts = location.pathname.split('/');
  if (parts.length > 4) navigate(parts.slice(0, 4).join('/'));
}
