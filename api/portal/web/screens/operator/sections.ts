// The operator's pages in the order of the top bar. Pure.
export const SECTIONS = [
  { id: 'orgs', title: 'Organizations', key: 'o' },
  { id: 'jobs', title: 'Jobs', key: 'j' },
  { id: 'pipeline', title: 'Pipeline', key: 'p' },
  { id: 'dead-letters', title: 'Dead letters', key: 'd' },
  { id: 'analysts', title: 'Analysts', key: 'a' },
  { id: 'repricing', title: 'Repricing', key: 'r' },
] as const;
