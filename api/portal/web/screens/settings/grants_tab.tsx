// Grants: permissions of one member on one resource until a time, in addition to the role.
import { type ReactElement, useState } from 'react';
import { Link } from 'wouter';
import { useOrganization } from '../../client/session.ts';
import { useKeys } from '../../shell/keys.ts';
import { useHasPage } from '../../shell/pages_context.ts';
import { usePageRequest } from '../../shell/page_request.ts';
import { oneLine } from '../../trace/text/one_line.ts';
import { Button } from '../../ui/button.tsx';
import { Moment } from '../../ui/moment.tsx';
import numbers from '../../ui/number_table.module.css';
import { useSearchState } from '../../url/use_search_state.ts';
import costs from '../costs/costs.module.css';
import { type Grant, grantsUrl, type GrantType, PAGE, useGrants, useRevokeGrant } from './grant_api.ts';
import { GrantDialog } from './grant_dialog.tsx';
import { useActiveMembers } from './member_api.ts';
import { ConfirmDialog, Loaded, Pager, Section } from './parts.tsx';

const PLACES: Readonly<Record<GrantType, string>> = {
  trace: '/traces',
  agent: '/agents',
  judge: '/judges',
  dataset: '/datasets',
};

/** The tab. */
export default function GrantsTab(): ReactElement {
  const { org_id } = useOrganization();
  const [{ resource_type, resource_id, offset }, change] = useSearchState(grantsUrl);
  const [isOpen, setOpen] = useState(false);
  const [revoked, setRevoked] = useState<Grant | null>(null);
  const list = useGrants(offset ?? 0);
  usePageRequest(`/orgs/${encodeURIComponent(org_id)}/grants?limit=${PAGE}`);
  const create = (): void => {
    setOpen(true);
  };
  useKeys('Grants', [{ keys: 'n', label: 'Create a grant', run: create }]);
  return (
    <Section
      title="Grants"
      change={{ permission: 'grants:edit', actions: ['grant.create', 'grant.delete'] }}
      actions={
        <Button look="primary" icon="plus" keys="n" onClick={create}>
          Create grant
        </Button>
      }
    >
      <p className={costs.note}>
        A grant gives one member permissions on one trace, agent, judge or dataset until a time, in addition to their
        role. It also ends with the membership.
      </p>
      <Loaded query={list} what="the grants">
        {({ grants, total }) => (
          <>
            {grants.length === 0 ? (
              <p className={costs.note}>No grant is in force.</p>
            ) : (
              <GrantTable grants={grants} onRevoke={setRevoked} />
            )}
            <Pager
              total={total}
              offset={offset ?? 0}
              limit={PAGE}
              onOffset={(next) => {
                change({ offset: next });
              }}
            />
          </>
        )}
      </Loaded>
      {(isOpen || resource_type !== null) && (
        <GrantDialog
          resource={{ type: resource_type ?? 'trace', id: resource_id }}
          onClose={() => {
            setOpen(false);
            change({ resource_type: null, resource_id: '' }, { replace: true });
          }}
        />
      )}
      {revoked !== null && (
        <RevokeDialog
          grant={revoked}
          onClose={() => {
            setRevoked(null);
          }}
        />
      )}
    </Section>
  );
}

interface GrantTableProps {
  grants: readonly Grant[];
  onRevoke: (grant: Grant) => void;
}

function GrantTable({ grants, onRevoke }: GrantTableProps): ReactElement {
  const { org_id } = useOrganization();
  const hasPage = useHasPage();
  const members = useActiveMembers();
  const emails = new Map(members.data?.members.map(({ user_id, email }) => [user_id, email]));
  return (
    <div className={numbers.scroll} role="region" aria-label="Grants" tabIndex={0}>
      <table className={numbers.table}>
        <thead>
          <tr>
            <th scope="col">Member</th>
            <th scope="col" className={numbers.words}>
              Resource
            </th>
            <th scope="col" className={numbers.words}>
              Permissions
            </th>
            <th scope="col">Until</th>
            <th scope="col">Change</th>
          </tr>
        </thead>
        <tbody>
          {grants.map((grant) => {
            const { grant_id, user_id, resource, permissions, expires_at } = grant;
            const who = oneLine(emails.get(user_id) ?? user_id);
            const id = oneLine(resource.id);
            const place = PLACES[resource.type];
            return (
              <tr key={grant_id}>
                <th scope="row" className={costs.name}>
                  {who}
                </th>
                <td className={numbers.words}>
                  {resource.type}{' '}
                  {hasPage(`${place}/:${resource.type}_id`) ? (
                    <Link href={`/o/${encodeURIComponent(org_id)}${place}/${encodeURIComponent(resource.id)}`}>
                      {id}
                    </Link>
                  ) : (
                    id
                  )}
                </td>
                <td className={numbers.words}>{permissions.join(', ')}</td>
                <td>
                  <Moment at={expires_at} form="full" />
                </td>
                <td>
                  <Button
                    look="quiet"
                    aria-label={`Revoke grant of ${who} on ${id}`}
                    onClick={() => {
                      onRevoke(grant);
                    }}
                  >
                    Revoke
                  </Button>
                </td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </div>
  );
}

function RevokeDialog({ grant, onClose }: { grant: Grant; onClose: () => void }): ReactElement {
  const revoke = useRevokeGrant(onClose);
  return (
    <ConfirmDialog
      title={`Revoke the grant on ${oneLine(grant.resource.id)}`}
      action="Revoke grant"
      danger
      busy={revoke.isPending}
      error={revoke.error}
      onConfirm={() => {
        revoke.mutate(grant.grant_id);
      }}
      onClose={onClose}
    >
      <p>
        {oneLine(grant.user_id)} loses {grant.permissions.join(', ')} on this {grant.resource.type} at once, unless the
        role has them.
      </p>
    </ConfirmDialog>
  );
}
