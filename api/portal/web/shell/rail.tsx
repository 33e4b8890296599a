// The left rail: the organization and the sections. `[` makes it narrow; under 720 pixels it is a
// sheet behind the menu button of the top bar.
import { useQuery } from '@tanstack/react-query';
import type { ReactElement } from 'react';
import { Link } from 'wouter';
import { usePathname } from 'wouter/use-browser-location';
import { useOrganization, useSession } from '../client/session.ts';
import { openIncidentsQuery, useLiveIncidents } from '../screens/incidents/incident_data.ts';
import { count } from '../text/format.ts';
import { Button } from '../ui/button.tsx';
import { cx } from '../ui/cx.ts';
import { Icon } from '../ui/icons.tsx';
import { Menu } from '../ui/menu.tsx';
import styles from './rail.module.css';
import { toggleRail, useRailNarrow } from './rail_width.ts';
import { ORG_ROUTES } from './routes.tsx';
import { INCIDENTS, isWithin, type Section, sectionsFor } from './sections.ts';
import { useAfterContent } from './use_after_content.ts';

export const ORG_PATHS: ReadonlySet<string> = new Set(ORG_ROUTES.map(({ path }) => path));

/** The rail. */
export function Rail({ open, onNavigate }: { open: boolean; onNavigate: () => void }): ReactElement {
  const isNarrow = useRailNarrow();
  const { can } = useOrganization();
  return (
    <nav className={cx(styles.rail, isNarrow && styles.narrow, open && styles.open)} aria-label="Sections" id="rail">
      <OrganizationMenu />
      {sectionsFor(ORG_PATHS, can).map((group) => (
        <ul key={group[0]?.path} className={styles.group}>
          {group.map((section) => (
            <li key={section.path}>
              {section.path === INCIDENTS ? (
                <IncidentsLink section={section} onNavigate={onNavigate} />
              ) : (
                <SectionLink section={section} onNavigate={onNavigate} />
              )}
            </li>
          ))}
        </ul>
      ))}
      <p className={styles.width}>
        <Button
          look="quiet"
          icon="rail"
          keys="["
          hint={isNarrow ? 'Show the titles of the sections' : 'Show the icons of the sections only'}
          onClick={toggleRail}
        />
      </p>
    </nav>
  );
}

interface SectionLinkProps {
  section: Section;
  /** Number of things that wait there; 0 shows none. */
  waiting?: number;
  onNavigate: () => void;
}

function SectionLink({ section, waiting = 0, onNavigate }: SectionLinkProps): ReactElement {
  const { org_id } = useOrganization();
  const path = usePathname();
  const name = waiting === 0 ? section.title : `${section.title}, ${count(waiting)} open`;
  return (
    <Link
      href={`/o/${encodeURIComponent(org_id)}${section.path}`}
      className={styles.link}
      aria-current={isWithin(path, section.path, org_id) ? 'page' : undefined}
      title={section.key === null ? name : `${name} (g ${section.key})`}
      onClick={onNavigate}
    >
      <>
        <Icon name={section.icon} />
        <span className={styles.title}>{section.title}</span>
        {waiting > 0 && (
          // The title of the link says it in words.
          <span className={styles.count} aria-hidden="true">
            {count(waiting)}
          </span>
        )}
      </>
    </Link>
  );
}

/** The link to the incidents with the number of those that are open, which the live stream keeps current. */
function IncidentsLink(props: Omit<SectionLinkProps, 'waiting'>): ReactElement {
  const { org_id } = useOrganization();
  const { data } = useQuery({ ...openIncidentsQuery(org_id), enabled: useAfterContent() });
  // The stream begins with those of the page: a topic that came later would begin all of them again.
  useLiveIncidents(org_id);
  return <SectionLink {...props} waiting={data?.meta.total ?? 0} />;
}

function OrganizationMenu(): ReactElement {
  const { org_id, name } = useOrganization();
  const session = useSession();
  const others = (session.data?.orgs ?? []).filter((org) => org.org_id !== org_id);
  if (others.length === 0) {
    return (
      <p className={styles.org} title={org_id}>
        <span className={styles.badge} aria-hidden="true">
          {name.slice(0, 1)}
        </span>
        <span className={styles.title}>{name}</span>
      </p>
    );
  }
  return (
    <div className={styles.org}>
      <Menu
        label={`Organization: ${name}`}
        look="quiet"
        items={others.map((org) => ({
          label: org.name,
          aside: org.role,
          href: `/o/${encodeURIComponent(org.org_id)}`,
        }))}
      >
        <span className={styles.badge} aria-hidden="true">
          {name.slice(0, 1)}
        </span>
        <span className={styles.title}>{name}</span>
      </Menu>
    </div>
  );
}
