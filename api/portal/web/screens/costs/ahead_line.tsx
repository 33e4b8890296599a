// Where the month ends, in words over the costs so far: the cost of the coming days, and when the use
// of a limited resource reaches its limits. The tab Forecast has the pictures.
import { useQuery } from '@tanstack/react-query';
import type { ReactElement } from 'react';
import { Link } from 'wouter';
import { apiQuery } from '../../client/api.ts';
import { useOrganization } from '../../client/session.ts';
import { AHEAD_DAYS, costWords, limitsOf, limitWords } from './forecast_words.ts';

/** The line; nothing while there is no forecast. */
export function AheadLine(): ReactElement | null {
  const { org_id } = useOrganization();
  const cost = useQuery(apiQuery(org_id, '/v1/cost/forecast', { query: { days: AHEAD_DAYS } }));
  const use = useQuery(apiQuery(org_id, '/v1/budgets/forecast', {}));
  const words = [
    cost.data === undefined ? '' : costWords(cost.data.data),
    ...(use.data === undefined ? [] : limitsOf(use.data.data)).map(({ forecast, today, end }) =>
      limitWords(forecast, today, end),
    ),
  ].filter((sentence) => sentence !== '');
  if (words.length === 0) return null;
  return (
    <p>
      {words.join(' ')}{' '}
      <Link href={`/o/${encodeURIComponent(org_id)}/costs/forecast`}>Show the forecast and the limits</Link>
    </p>
  );
}
