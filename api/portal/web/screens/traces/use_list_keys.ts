// The keys of the list that do not belong to its rows.
import type { RefObject } from 'react';
import type { ChangeList } from '../../lists/use_list_url.ts';
import { useKeys } from '../../shell/keys.ts';

interface ListKeys {
  field: RefObject<HTMLInputElement | null>;
  /** Elements around the button of the time range, and around the tabs of the views. */
  time: RefObject<HTMLElement | null>;
  views: RefObject<HTMLElement | null>;
  change: ChangeList;
  onFacets: () => void;
  onSave: () => void;
}

/** Registers the keys while the list is on the screen. */
export function useListKeys({ field, time, views, change, onFacets, onSave }: ListKeys): void {
  useKeys('Traces', [
    {
      keys: '/',
      label: 'Filter and search',
      run: () => {
        field.current?.focus();
        field.current?.select();
      },
    },
    { keys: 't', label: 'Choose the time range', run: () => time.current?.querySelector('button')?.click() },
    {
      keys: 'l',
      label: 'Turn live on or off',
      run: () => {
        change((now) => ({ ...now, live: !now.live }));
      },
    },
    {
      keys: 'v',
      label: 'Go to the views',
      run: () => views.current?.querySelector<HTMLElement>('[role="tab"][tabindex="0"], [role="tab"]')?.focus(),
    },
    { keys: 'f', label: 'Show or hide the filters', run: onFacets },
    { keys: 's', label: 'Save the filters as a view', run: onSave },
  ]);
}
