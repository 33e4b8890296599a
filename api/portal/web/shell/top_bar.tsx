// The top bar: menu of sections on narrow screens, crumbs and the title, the palette, and the person's menu.
import { Fragment, type ReactElement } from 'react';
import { Link } from 'wouter';
import { usePathname } from 'wouter/use-browser-location';
import { useOrganization, useSession } from '../client/session.ts';
import { Button } from '../ui/button.tsx';
import { Menu } from '../ui/menu.tsx';
import { crumbsOf } from './crumbs.ts';
import { endSession } from './end_session.ts';
import { Keys } from './keys_overlay.tsx';
import { useShownTitle } from './page_title.ts';
import { setPreferences, usePreferences } from './preferences.ts';
import { ORG_ROUTES } from './routes.tsx';
import styles from './top_bar.module.css';

const TITLES: ReadonlyMap<string, string> = new Map(ORG_ROUTES.map(({ path, title }) => [path, title]));

interface TopBarProps {
  title: string;
  railOpen: boolean;
  onRail: () => void;
  onLayer: (layer: 'palette' | 'keys') => void;
}

/** The top bar. */
export function TopBar({ title, railOpen, onRail, onLayer }: TopBarProps): ReactElement {
  const path = usePathname();
  const shown = useShownTitle(title);
  // The title of a tab names its page already, as "Costs: budgets" does.
  const crumbs = crumbsOf(path, TITLES).filter((crumb) => !shown.startsWith(`${crumb.title}: `));
  return (
    <header className={styles.bar}>
      <span className={styles.small}>
        <Button
          look="quiet"
          icon="menu"
          hint="Sections"
          aria-expanded={railOpen}
          aria-controls="rail"
          onClick={onRail}
        />
      </span>
      <div className={styles.where}>
        {crumbs.length > 0 && (
          <nav aria-label="Pages above" className={styles.crumbs}>
            {crumbs.map((crumb) => (
              <Fragment key={crumb.href}>
                <Link href={crumb.href}>{crumb.title}</Link>
                <span aria-hidden="true">/</span>
              </Fragment>
            ))}
          </nav>
        )}
        <h1 className={styles.title} title={shown}>
          {shown}
        </h1>
      </div>
      <Button
        look="quiet"
        icon="search"
        aria-haspopup="dialog"
        className={styles.palette}
        onClick={() => {
          onLayer('palette');
        }}
      >
        <span className="visually-hidden">Commands and pages</span>
        <span className={styles.paletteKeys} aria-hidden="true">
          <Keys keys="Mod+k" />
        </span>
      </Button>
      <PersonMenu onLayer={onLayer} />
    </header>
  );
}

function PersonMenu({ onLayer }: Pick<TopBarProps, 'onLayer'>): ReactElement {
  const { org_id } = useOrganization();
  const { zone, theme } = usePreferences();
  const session = useSession();
  const dark = theme === 'dark' || (theme === 'system' && matchMedia('(prefers-color-scheme: dark)').matches);
  const who = session.data?.email ?? session.data?.user_id ?? 'You';
  return (
    <Menu
      label={`Account: ${who}`}
      icon="user"
      look="quiet"
      align="end"
      items={[
        { label: 'Preferences', icon: 'settings', aside: who, href: `/o/${encodeURIComponent(org_id)}/me` },
        {
          label: dark ? 'Use the light theme' : 'Use the dark theme',
          icon: dark ? 'sun' : 'moon',
          onSelect: () => {
            setPreferences({ theme: dark ? 'light' : 'dark' });
          },
        },
        {
          label: zone === 'utc' ? 'Show local times' : 'Show times in UTC',
          icon: 'clock',
          aside: 'u',
          onSelect: () => {
            setPreferences({ zone: zone === 'utc' ? 'local' : 'utc' });
          },
        },
        {
          label: 'Show shortcuts',
          icon: 'keyboard',
          aside: '?',
          onSelect: () => {
            onLayer('keys');
          },
        },
        { label: 'Log out', icon: 'logout', apart: true, onSelect: endSession },
      ]}
    />
  );
}
