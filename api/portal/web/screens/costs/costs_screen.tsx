// Costs: tabs over what the organization spent and will spend. The time of the page is a number of
// whole UTC days, because costs are counted by UTC day.
import { type ReactElement, useRef } from 'react';
import { useLocation } from 'wouter';
import { readAhead } from '../../client/query_client.ts';
import { useOrganization, whenPermitted } from '../../client/session.ts';
import { useKeys } from '../../shell/keys.ts';
import { usePageTitle } from '../../shell/page_title.ts';
import { useRouteParams } from '../../shell/route_params.ts';
import type { Preload } from '../../shell/routes.tsx';
import { useNarrow } from '../../lists/use_narrow.ts';
import { Select } from '../../ui/field.tsx';
import { Tabs } from '../../ui/tabs.tsx';
import { useSearchState } from '../../url/use_search_state.ts';
import styles from '../home/home.module.css';
import NotFoundScreen from '../not_found/not_found_screen.tsx';
import { COST_TABS } from './costs_tabs.tsx';
import costs from './costs.module.css';
import { costsUrl } from './costs_url.ts';

const DAYS = [7, 14, 30, 60, 90, 180, 365];
/** The first tab has no segment of its own; Tabs needs a name for each. */
const idOf = (section: string): string => (section === '' ? 'summary' : section);

/** Loads the tab that the address names, and starts its requests. */
export const preload: Preload = (context) => {
  const { section = '' } = context.params;
  const loaded = COST_TABS.find(({ id }) => id === section)?.load();
  const begin = (): void => {
    if (loaded !== undefined) readAhead(loaded.then((tab) => tab.preload?.(context)));
  };
  readAhead(whenPermitted(context.org_id, 'costs:read', begin));
};

/** The page. */
export default function CostsScreen(): ReactElement {
  const { org_id } = useOrganization();
  const section = useRouteParams()('section');
  const [, navigate] = useLocation();
  const tab = COST_TABS.find(({ id }) => id === section);
  usePageTitle(tab === undefined || tab.id === '' ? null : `Costs: ${tab.label.toLowerCase()}`);
  const narrow = useNarrow();
  if (tab === undefined) return <NotFoundScreen framed />;
  const Screen = tab.screen;
  return (
    <div className={styles.page}>
      <Tabs
        label="Costs"
        selected={idOf(section)}
        tabs={COST_TABS.map(({ id, label }) => ({ id: idOf(id), label }))}
        onSelect={(next) => {
          const path = COST_TABS.find(({ id }) => idOf(id) === next)?.id ?? '';
          navigate(`/o/${encodeURIComponent(org_id)}/costs${path === '' ? '' : `/${path}`}${location.search}`);
        }}
        aside={tab.days && !narrow && <DaysField />}
      >
        {tab.days && narrow && (
          <div className={costs.days}>
            <DaysField />
          </div>
        )}
        <Screen />
      </Tabs>
    </div>
  );
}

function DaysField(): ReactElement {
  const [{ days }, change] = useSearchState(costsUrl);
  const field = useRef<HTMLSelectElement>(null);
  useKeys('Costs', [{ keys: 't', label: 'Choose the days', run: () => field.current?.focus() }]);
  const choices = [...new Set([...DAYS, days])].toSorted((a, b) => a - b);
  return (
    <span>
      <Select
        ref={field}
        aria-label="Days, UTC"
        title="Days are UTC (t)"
        aria-keyshortcuts="t"
        value={days}
        onChange={(event) => {
          change({ days: Number(event.currentTarget.value) });
        }}
      >
        {choices.map((one) => (
          <option key={one} value={one}>
            {one} days, UTC
          </option>
        ))}
      </Select>
    </span>
  );
}
