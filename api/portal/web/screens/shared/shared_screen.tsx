// What was shared with the person: the single traces, agents, judges and datasets on which a grant gives them more than
// their role, in this organization and in the others.
import type { ReactElement } from 'react';
import { Link } from 'wouter';
import { type Grant, grantPath } from '../../client/granted.ts';
import { type SessionOrg, useOrganization, useSession } from '../../client/session.ts';
import pages from '../../shell/page.module.css';
import { EmptyState } from '../../ui/empty_state.tsx';
import { Moment } from '../../ui/moment.tsx';
import styles from './shared.module.css';

const NAMES: Readonly<Record<Grant['resource']['type'], string>> = {
  trace: 'Trace',
  agent: 'Agent',
  judge: 'Judge',
  dataset: 'Dataset',
};
/** What a permission lets people do with the thing. */
const RIGHTS: Readonly<Record<string, string>> = { read: 'read', write: 'change', export: 'export', run: 'run' };

/** The page. */
export default function SharedScreen(): ReactElement {
  const { org_id, name } = useOrganization();
  const orgs = useSession().data?.orgs ?? [];
  const here = orgs.filter((org) => org.org_id === org_id);
  const shown = [...here, ...orgs.filter((org) => org.org_id !== org_id)].filter(({ grants }) => grants.length > 0);
  if (shown.length === 0)
    return (
      <div className={pages.page}>
        <EmptyState title="Nothing is shared with you">
          An owner can give you more than your role on a single trace, agent, judge or dataset, for a limited time. It
          then appears here, from {name} and from your other organizations.
        </EmptyState>
      </div>
    );
  return (
    <div className={pages.page}>
      {shown.map((org) => (
        <Shared key={org.org_id} org={org} isHere={org.org_id === org_id} />
      ))}
    </div>
  );
}

function Shared({ org, isHere }: { org: SessionOrg; isHere: boolean }): ReactElement {
  return (
    <section className={styles.section}>
      <h2>{isHere ? org.name : `From ${org.name}`}</h2>
      <ul className={styles.list}>
        {org.grants.map((grant) => (
          <li key={grant.grant_id} className={styles.item}>
            <span className={styles.kind}>{NAMES[grant.resource.type]}</span>
            <Link href={grantPath(org.org_id, grant)} className={styles.name}>
              {grant.resource.id}
            </Link>
            <span>You may {rightsOf(grant)} it</span>
            <span className={styles.until}>
              until <Moment at={grant.expires_at} form="full" />
            </span>
          </li>
        ))}
      </ul>
    </section>
  );
}

function rightsOf({ permissions }: Grant): string {
  const words = permissions.map((permission) => RIGHTS[permission.split(':')[1] ?? ''] ?? permission);
  return words.length < 2 ? words.join('') : `${words.slice(0, -1).join(', ')} and ${words.at(-1) ?? ''}`;
}
