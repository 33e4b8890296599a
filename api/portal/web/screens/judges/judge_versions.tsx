// The versions of a judge, and what changed from each to the next.
import { useQuery } from '@tanstack/react-query';
import type { ReactElement } from 'react';
import { apiQuery } from '../../client/api.ts';
import { useOrganization } from '../../client/session.ts';
import { DiffView } from '../../diff/diff_view.tsx';
import { Button } from '../../ui/button.tsx';
import { ErrorPanel } from '../../ui/error_panel.tsx';
import { Moment } from '../../ui/moment.tsx';
import { Skeleton } from '../../ui/skeleton.tsx';
import { codec, integer } from '../../url/search_params.ts';
import { useSearchState } from '../../url/use_search_state.ts';
import lists from '../sessions/sessions.module.css';
import styles from './judges.module.css';
import { definitionText } from './draft.ts';

const CODEC = codec({ version: integer(1, 2 ** 31) });

/** The panel. */
export function JudgeVersions({ judge_id }: { judge_id: string }): ReactElement {
  const { org_id } = useOrganization();
  const [{ version: chosen }, change] = useSearchState(CODEC);
  const versions = useQuery(
    apiQuery(org_id, '/v1/judges/{judge_id}/versions', { path: { judge_id }, query: { limit: 100 } }),
  );
  if (versions.error !== null)
    return <ErrorPanel error={versions.error} what="the versions" onRetry={() => void versions.refetch()} />;
  if (versions.data === undefined) return <Skeleton rows={4} height={32} />;
  const { data } = versions.data;
  const at = Math.max(
    0,
    data.findIndex(({ version }) => version === chosen),
  );
  const [right, left] = [data[at], data[at + 1]];
  return (
    <div className={styles.stack}>
      <ul className={lists.cards}>
        {data.map((one, index) => (
          <li key={one.version} className={lists.card}>
            <span className={lists.cardName}>Version {one.version}</span>
            <Moment at={one.updated_at} />
            <Button
              look="quiet"
              aria-pressed={index === at}
              onClick={() => {
                change({ version: one.version });
              }}
            >
              {`Show version ${one.version}`}
            </Button>
          </li>
        ))}
      </ul>
      {right !== undefined && (
        <DiffView
          title={left === undefined ? `Version ${right.version}` : `Version ${left.version} to ${right.version}`}
          left={left === undefined ? definitionText(right) : definitionText(left)}
          right={definitionText(right)}
          sides={[`Version ${left?.version ?? right.version}`, `Version ${right.version}`]}
        />
      )}
    </div>
  );
}
