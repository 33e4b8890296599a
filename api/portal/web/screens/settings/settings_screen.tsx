// The settings of an organization: a row of tabs, those that the person may read.
import type { ReactElement } from 'react';
import { useLocation } from 'wouter';
import { useOrganization } from '../../client/session.ts';
import { usePageTitle } from '../../shell/page_title.ts';
import { useRouteParams } from '../../shell/route_params.ts';
import { SETTINGS, type SettingsSection } from '../../shell/sections.ts';
import { EmptyState } from '../../ui/empty_state.tsx';
import { Tabs } from '../../ui/tabs.tsx';
import home from '../home/home.module.css';
import NotFoundScreen from '../not_found/not_found_screen.tsx';
import { rolesWords, usePermissions } from './settings_api.ts';
import { SCREENS } from './settings_tabs.tsx';

const FIRST = 'members';

/** The page. */
export default function SettingsScreen(): ReactElement {
  const { org_id, can } = useOrganization();
  const named = useRouteParams()('section');
  const [, navigate] = useLocation();
  const shown = SETTINGS.filter(({ id }) => id in SCREENS);
  const tab = shown.find(({ id }) => id === (named === '' ? FIRST : named));
  usePageTitle(tab === undefined ? null : `Settings: ${tab.title}`);
  if (tab === undefined) return <NotFoundScreen framed />;
  const Screen = SCREENS[tab.id];
  return (
    <div className={home.page}>
      <Tabs
        label="Settings"
        selected={tab.id}
        tabs={shown
          .filter(({ id, permission }) => can(permission) || id === tab.id)
          .map(({ id, title }) => ({ id, label: title }))}
        onSelect={(next) => {
          navigate(`/o/${encodeURIComponent(org_id)}/settings/${next}`);
        }}
      >
        {can(tab.permission) && Screen !== undefined ? <Screen /> : <NoRight tab={tab} />}
      </Tabs>
    </div>
  );
}

/** Explains a tab that the person opened by a link and may not read. */
function NoRight({ tab }: { tab: SettingsSection }): ReactElement {
  const { name } = useOrganization();
  const permissions = usePermissions();
  const roles = rolesWords(permissions.data, tab.permission);
  return (
    <EmptyState title={`Your role in ${name} may not read this page`}>
      {tab.title} needs the permission <code>{tab.permission}</code>
      {roles === null ? '' : `, which ${roles} have`}. An owner of the organization can change your role.
    </EmptyState>
  );
}
