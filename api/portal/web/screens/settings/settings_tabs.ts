// The content of each tab of the settings, which loads when the tab is opened. A tab takes no
// properties and reads the address by itself.
import { type ComponentType, lazy } from 'react';

export const SCREENS: Readonly<Record<string, ComponentType>> = {
  members: lazy(() => import('./members_tab.tsx')),
  roles: lazy(() => import('./roles_tab.tsx')),
  keys: lazy(() => import('./keys_tab.tsx')),
  grants: lazy(() => import('./grants_tab.tsx')),
  policy: lazy(() => import('./policy_tab.tsx')),
  privacy: lazy(() => import('./privacy_tab.tsx')),
  retention: lazy(() => import('./retention_tab.tsx')),
  sampling: lazy(() => import('./sampling_tab.tsx')),
  plan: lazy(() => import('./plan_tab.tsx')),
};
