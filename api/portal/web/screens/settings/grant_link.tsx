// The way from a thing to a grant on it: the dialog on the page of the grants, with the thing filled in.
import type { ReactElement } from 'react';
import { useOrganization } from '../../client/session.ts';
import { ButtonLink } from '../../ui/button.tsx';
import type { GrantType } from './grant_api.ts';

/** Returns the address of the dialog that grants access to a thing. */
export const grantHref = (org_id: string, type: GrantType, id: string): string =>
  `/o/${encodeURIComponent(org_id)}/settings/grants?${new URLSearchParams({ resource_type: type, resource_id: id })}`;

/** The link for people who may grant access; nothing for others. */
export function GrantLink({ type, id }: { type: GrantType; id: string }): ReactElement | null {
  const { org_id, can } = useOrganization();
  if (!can('grants:edit')) return null;
  return (
    <ButtonLink href={grantHref(org_id, type, id)} icon="key">
      Grant access
    </ButtonLink>
  );
}
