// The tabs of the cost pages: the last segment of the address, the label, and the content, which loads
// when the tab is opened. A tab takes no properties and reads the address by itself.
import type { ComponentType } from 'react';
import type { Preload } from '../../shell/routes.tsx';
import { deferred } from '../../ui/deferred.tsx';
import { Skeleton } from '../../ui/skeleton.tsx';

interface CostTab {
  /** Last segment of the address; empty for the first tab. */
  id: string;
  label: string;
  /** True if the tab shows the days that the page's own time names. */
  days: boolean;
  /** Loads the chunk of the tab, whose file may export `preload` as that of a page does. */
  load: () => Promise<{ default: ComponentType; preload?: Preload }>;
  screen: ComponentType;
}

const tab = (id: string, label: string, days: boolean, load: CostTab['load']): CostTab => ({
  id,
  label,
  days,
  load,
  screen: deferred(load, () => (
    <div aria-busy="true">
      <Skeleton rows={12} height={20} />
    </div>
  )),
});

export const COST_TABS: readonly CostTab[] = [
  tab('', 'Summary', true, () => import('./summary_tab.tsx')),
  tab('forecast', 'Forecast', false, () => import('./forecast_tab.tsx')),
  tab('budgets', 'Budgets', false, () => import('./budgets_tab.tsx')),
  tab('anomalies', 'Anomalies', true, () => import('./anomalies_tab.tsx')),
  tab('outcomes', 'Outcomes', true, () => import('./outcomes_tab.tsx')),
  tab('prices', 'Prices', true, () => import('./prices_tab.tsx')),
];
