// The live traces that a judge scored, by verdict, newest first.
import { useInfiniteQuery } from '@tanstack/react-query';
import type { ReactElement } from 'react';
import { Link } from 'wouter';
import { get } from '../../client/api.ts';
import { useOrganization } from '../../client/session.ts';
import type { Verdict } from '../../lists/marks.tsx';
import { count } from '../../text/format.ts';
import { Button } from '../../ui/button.tsx';
import { Chip } from '../../ui/chip.tsx';
import { ErrorPanel } from '../../ui/error_panel.tsx';
import { Moment } from '../../ui/moment.tsx';
import { Skeleton } from '../../ui/skeleton.tsx';
import { codec, optionalChoice } from '../../url/search_params.ts';
import { useSearchState } from '../../url/use_search_state.ts';
import lists from '../sessions/sessions.module.css';
import styles from './judges.module.css';
import { VerdictMark, VERDICTS_WORST_FIRST } from './verdicts.tsx';

const DAYS = 30;
const CODEC = codec({ verdict: optionalChoice(['all', 'fail', 'error', 'warn', 'pass']) });

/** The panel. Without a choice it shows the traces that failed. */
export function JudgeTraces({ judge_id }: { judge_id: string }): ReactElement {
  const { org_id } = useOrganization();
  const [{ verdict: chosen }, change] = useSearchState(CODEC);
  const verdict = chosen ?? 'fail';
  const query = { days: DAYS, limit: 50, ...(verdict === 'all' ? {} : { verdict }) };
  const pages = useInfiniteQuery({
    queryKey: [org_id, '/v1/judges/{judge_id}/scores', judge_id, query],
    queryFn: ({ pageParam, signal }) =>
      get(
        org_id,
        '/v1/judges/{judge_id}/scores',
        { path: { judge_id }, query: { ...query, ...(pageParam === null ? {} : { cursor: pageParam }) } },
        { signal },
      ),
    initialPageParam: null as string | null,
    getNextPageParam: ({ meta }) => meta.next_cursor,
  });
  const total = pages.data?.pages[0]?.meta.total;
  const scores = pages.data?.pages.flatMap(({ data }) => data) ?? [];
  return (
    <div className={styles.stack}>
      <div className={styles.foot}>
        {(['all', ...VERDICTS_WORST_FIRST] as ('all' | Verdict)[]).map((one) => (
          <Chip
            key={one}
            pressed={verdict === one}
            onToggle={() => {
              change({ verdict: one });
            }}
          >
            {one === 'all' ? 'All' : one}
          </Chip>
        ))}
        <span role="status" className={styles.quiet}>
          {total === undefined ? '' : `${count(total)} ${total === 1 ? 'trace' : 'traces'} of the last 30 days`}
        </span>
      </div>
      {pages.error !== null && (
        <ErrorPanel error={pages.error} what="the scores" onRetry={() => void pages.refetch()} />
      )}
      {pages.isPending && <Skeleton rows={6} height={32} />}
      <ul className={lists.cards}>
        {scores.map((score) => (
          <li key={`${score.trace_id} ${score.judge_version}`} className={styles.item}>
            <span className={styles.line}>
              <Link href={`/o/${encodeURIComponent(org_id)}/traces/${encodeURIComponent(score.trace_id)}`}>
                {score.trace_id}
              </Link>
              <VerdictMark verdict={score.verdict} />
            </span>
            {score.reason !== '' && <span>{score.reason}</span>}
            <span className={styles.quiet}>
              {score.agent_id} · version {score.judge_version} · <Moment at={score.scored_at} form="ago" />
            </span>
          </li>
        ))}
      </ul>
      {pages.hasNextPage && (
        <div>
          <Button busy={pages.isFetchingNextPage} onClick={() => void pages.fetchNextPage()}>
            Show more
          </Button>
        </div>
      )}
    </div>
  );
}
