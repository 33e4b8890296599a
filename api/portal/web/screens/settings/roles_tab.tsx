// The table of roles and permissions, as the API states it. Roles cannot be changed.
import type { ReactElement } from 'react';
import { useOrganization } from '../../client/session.ts';
import { usePageRequest } from '../../shell/page_request.ts';
import { Icon } from '../../ui/icons.tsx';
import numbers from '../../ui/number_table.module.css';
import costs from '../costs/costs.module.css';
import { ROLES } from './member_api.ts';
import { Loaded, Section } from './parts.tsx';
import { type PermissionItem, usePermissions } from './settings_api.ts';

/** The tab. */
export default function RolesTab(): ReactElement {
  const { org_id } = useOrganization();
  const permissions = usePermissions();
  usePageRequest(`/orgs/${encodeURIComponent(org_id)}/permissions`);
  return (
    <Section title="Roles and permissions">
      <p className={costs.note}>
        Each role has the permissions of the roles before it. A scope gives the permission to an API key; what only
        owners may do takes no key. Grants add a permission on one resource for a time.
      </p>
      <Loaded query={permissions} what="the permissions" rows={12}>
        {(items) => <PermissionTable items={items} />}
      </Loaded>
    </Section>
  );
}

function PermissionTable({ items }: { items: readonly PermissionItem[] }): ReactElement {
  const { can } = useOrganization();
  return (
    <div className={numbers.scroll} role="region" aria-label="Permissions of roles" tabIndex={0}>
      <table className={numbers.table}>
        <thead>
          <tr>
            <th scope="col">Permission</th>
            {ROLES.map((role) => (
              <th key={role} scope="col">
                {role}
              </th>
            ))}
            <th scope="col">You</th>
            <th scope="col" className={numbers.words}>
              Scope of a key
            </th>
            <th scope="col" className={numbers.words}>
              Can be granted on
            </th>
          </tr>
        </thead>
        <tbody>
          {items.map(({ permission, description, roles, scope, grantable_on }) => (
            <tr key={permission}>
              <th scope="row" className={costs.wide}>
                {description} <code className={costs.small}>{permission}</code>
              </th>
              {ROLES.map((role) => (
                <td key={role}>
                  <Held held={roles.includes(role)} />
                </td>
              ))}
              <td>
                <Held held={can(permission)} />
              </td>
              <td className={numbers.words}>{scope === null ? '–' : <code>{scope}</code>}</td>
              <td className={numbers.words}>{grantable_on.length === 0 ? '–' : grantable_on.join(', ')}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Held({ held }: { held: boolean }): ReactElement {
  return held ? (
    <>
      <Icon name="check" />
      <span className="visually-hidden">yes</span>
    </>
  ) : (
    <span className="visually-hidden">no</span>
  );
}
