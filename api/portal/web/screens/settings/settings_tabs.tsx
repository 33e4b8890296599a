// The content of each tab of the settings, which loads when the tab is opened. A tab takes no
// properties and reads the address by itself.
import type { ComponentType } from 'react';
import { deferred } from '../../ui/deferred.tsx';
import { Skeleton } from '../../ui/skeleton.tsx';

const tab = (load: () => Promise<{ default: ComponentType }>): ComponentType =>
  deferred(load, () => (
    <div aria-busy="true">
      <Skeleton rows={12} height={20} />
    </div>
  ));

export const SCREENS: Readonly<Record<string, ComponentType>> = {
  members: tab(() => import('./members_tab.tsx')),
  roles: tab(() => import('./roles_tab.tsx')),
  keys: tab(() => import('./keys_tab.tsx')),
  grants: tab(() => import('./grants_tab.tsx')),
  policy: tab(() => import('./policy_tab.tsx')),
  privacy: tab(() => import('./privacy_tab.tsx')),
  retention: tab(() => import('./retention_tab.tsx')),
  sampling: tab(() => import('./sampling_tab.tsx')),
  plan: tab(() => import('./plan_tab.tsx')),
};
