// The tabs of the cost pages: the last segment of the address, the label, and the content, which loads
// when the tab is opened. A tab takes no properties and reads the address by itself.
import { type ComponentType, lazy } from 'react';

interface CostTab {
  /** Last segment of the address; empty for the first tab. */
  id: string;
  label: string;
  /** True if the tab shows the days that the page's own time names. */
  days: boolean;
  screen: ComponentType;
}

export const COST_TABS: readonly CostTab[] = [
  { id: '', label: 'Summary', days: true, screen: lazy(() => import('./summary_tab.tsx')) },
  { id: 'forecast', label: 'Forecast', days: false, screen: lazy(() => import('./forecast_tab.tsx')) },
  { id: 'budgets', label: 'Budgets', days: false, screen: lazy(() => import('./budgets_tab.tsx')) },
  { id: 'anomalies', label: 'Anomalies', days: true, screen: lazy(() => import('./anomalies_tab.tsx')) },
  { id: 'outcomes', label: 'Outcomes', days: true, screen: lazy(() => import('./outcomes_tab.tsx')) },
  { id: 'prices', label: 'Prices', days: true, screen: lazy(() => import('./prices_tab.tsx')) },
];
