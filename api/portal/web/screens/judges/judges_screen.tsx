// The list of judges: what each judges, how it judged in the last 7 days, and its last breach.
import { useQuery } from '@tanstack/react-query';
import { type ReactElement, useMemo } from 'react';
import { Link, useLocation } from 'wouter';
import { type Answer, apiQuery } from '../../client/api.ts';
import { useOrganization } from '../../client/session.ts';
import { ListTable } from '../../lists/list_table.tsx';
import { useKeys } from '../../shell/keys.ts';
import { usePageRequest } from '../../shell/page_request.ts';
import { count } from '../../text/format.ts';
import { ButtonLink } from '../../ui/button.tsx';
import { Chip } from '../../ui/chip.tsx';
import type { Column } from '../../ui/data_table.tsx';
import { EmptyState } from '../../ui/empty_state.tsx';
import { ErrorPanel } from '../../ui/error_panel.tsx';
import { Moment } from '../../ui/moment.tsx';
import { codec, optionalChoice } from '../../url/search_params.ts';
import { useSearchState } from '../../url/use_search_state.ts';
import lists from '../sessions/sessions.module.css';
import styles from './judges.module.css';
import { scopeWords } from './scope_words.ts';
import { STARTERS } from './starters.ts';
import { PassRate, VerdictBar } from './verdicts.tsx';

type Judge = Answer<'/v1/judges'>['data'][number];
type Summary = Answer<'/v1/judges/stats'>['data'][number];
interface Row {
  judge: Judge;
  /** undefined until the statistics are there. */
  summary: Summary | undefined;
}

const DAYS = 7;
const LIMIT = 200;
const CODEC = codec({
  kind: optionalChoice(['deterministic', 'llm']),
  enabled: optionalChoice(['true', 'false']),
});

/** The page. */
export default function JudgesScreen(): ReactElement {
  const { org_id, can } = useOrganization();
  const [state, change] = useSearchState(CODEC);
  const { kind, enabled } = state;
  const query = {
    limit: LIMIT,
    ...(kind === null ? {} : { kind }),
    ...(enabled === null ? {} : { enabled }),
  };
  const judges = useQuery(apiQuery(org_id, '/v1/judges', { query: query }));
  const stats = useQuery(apiQuery(org_id, '/v1/judges/stats', { query: { days: DAYS } }));
  const { data } = judges;
  const rows = useMemo(() => {
    const byId = new Map(stats.data?.data.map((one) => [one.judge_id, one]));
    return data?.data.map((judge) => ({ judge, summary: byId.get(judge.judge_id) })) ?? [];
  }, [data, stats.data]);
  const base = `/o/${encodeURIComponent(org_id)}/judges`;
  const [, navigate] = useLocation();
  const create = (): void => {
    navigate(`${base}/new`);
  };
  usePageRequest(
    `/v1/judges?${new URLSearchParams(Object.entries(query).map(([name, value]) => [name, String(value)]))}`,
  );
  useKeys('Judges', can('judges:write') ? [{ keys: 'n', label: 'Create a judge', run: create }] : []);
  const total = data?.meta.total;
  return (
    <div className={lists.screen}>
      <div className={lists.tools}>
        <span className={lists.total} role="status">
          {total === undefined ? '' : `${count(total)} ${total === 1 ? 'judge' : 'judges'}`}
        </span>
        <Filters state={state} onChange={change} />
        {can('judges:write') && (
          <ButtonLink href={`${base}/new`} look="primary" icon="plus" keys="n">
            Create judge
          </ButtonLink>
        )}
      </div>
      {judges.error !== null && data === undefined ? (
        <div className={lists.state}>
          <ErrorPanel error={judges.error} what="the judges" onRetry={() => void judges.refetch()} />
        </div>
      ) : total === 0 ? (
        <div className={lists.state}>
          {kind === null && enabled === null ? (
            <NoJudges base={base} canWrite={can('judges:write')} />
          ) : (
            <EmptyState title="No judge matches these filters" action={<Link href={base}>Show all judges</Link>} />
          )}
        </div>
      ) : (
        <>
          {stats.error !== null && (
            <div className={lists.state}>
              <ErrorPanel error={stats.error} what="the pass rates" onRetry={() => void stats.refetch()} />
            </div>
          )}
          <JudgeTable rows={rows} base={base} loading={judges.isPending} />
        </>
      )}
    </div>
  );
}

type State = ReturnType<typeof CODEC.parse>;

/** The filters of the list. */
function Filters({
  state: { kind, enabled },
  onChange,
}: {
  state: State;
  onChange: (patch: Partial<State>) => void;
}): ReactElement {
  return (
    <>
      {(['deterministic', 'llm'] as const).map((one) => (
        <Chip
          key={one}
          pressed={kind === one}
          onToggle={() => {
            onChange({ kind: kind === one ? null : one });
          }}
        >
          {one === 'llm' ? 'Models' : 'Rules'}
        </Chip>
      ))}
      <Chip
        pressed={enabled === 'true'}
        onToggle={() => {
          onChange({ enabled: enabled === 'true' ? null : 'true' });
        }}
      >
        Enabled
      </Chip>
    </>
  );
}

function NoJudges({ base, canWrite }: { base: string; canWrite: boolean }): ReactElement {
  return (
    <EmptyState
      title="No judges"
      action={
        canWrite ? (
          <ul className={lists.cards} aria-label="Rules to begin with">
            {STARTERS.map(({ id, hint, draft }) => (
              <li key={id} className={styles.item}>
                <Link href={`${base}/new?from=${id}`}>{draft.name}</Link>
                <span className={styles.quiet}>{hint}</span>
              </li>
            ))}
          </ul>
        ) : undefined
      }
    >
      A judge scores each complete trace in its scope, by a rule or by a model.{' '}
      {canWrite ? 'Begin with one of these rules, and see what it says of your traces before you save it:' : ''}
    </EmptyState>
  );
}

const judgeIdOf = ({ judge }: Row): string => judge.judge_id;

function JudgeTable({ rows, base, loading }: { rows: readonly Row[]; base: string; loading: boolean }): ReactElement {
  const hrefOf = (id: string): string => `${base}/${encodeURIComponent(id)}`;
  return (
    <ListTable
      label="Judges"
      noun="judge"
      address="judges"
      rows={rows}
      rowKey={judgeIdOf}
      columns={(narrow) => columnsOf(hrefOf, narrow)}
      hrefOf={({ judge }) => hrefOf(judge.judge_id)}
      loading={loading}
    />
  );
}

function columnsOf(hrefOf: (id: string) => string, narrow: boolean): Column<Row>[] {
  const name = ({ judge }: Row): ReactElement => (
    <Link href={hrefOf(judge.judge_id)} className={lists.name} tabIndex={-1} title={judge.name}>
      {judge.name}
    </Link>
  );
  const rate = ({ summary }: Row): ReactElement | null =>
    summary === undefined ? null : <PassRate rate={summary.pass_rate} total={summary.total} />;
  const state = ({ judge }: Row): string => (judge.enabled ? 'Enabled' : 'Disabled');
  if (narrow)
    return [
      {
        id: 'lines',
        head: 'Judge',
        width: 'minmax(0, 1fr)',
        cell: (row) => (
          <span className={lists.lines}>
            <span className={lists.line}>
              <span className={lists.grow}>{name(row)}</span>
              {rate(row)}
            </span>
            <span className={lists.second}>
              <span className={lists.grow}>{row.judge.kind === 'llm' ? 'Model' : 'Rule'}</span>
              {state(row)}
            </span>
          </span>
        ),
      },
    ];
  return [
    { id: 'name', head: 'Name', width: 'minmax(200px, 3fr)', cell: name },
    { id: 'kind', head: 'Kind', width: '80px', cell: ({ judge }) => (judge.kind === 'llm' ? 'Model' : 'Rule') },
    { id: 'scope', head: 'Scope', width: 'minmax(120px, 2fr)', cell: ({ judge }) => scopeWords(judge) },
    { id: 'state', head: 'Live', width: '80px', cell: state },
    { id: 'rate', head: 'Pass rate, 7 d', width: '112px', align: 'end', cell: rate },
    {
      id: 'bar',
      head: 'Verdicts, 7 d',
      width: '144px',
      cell: ({ summary }) => (summary === undefined ? null : <VerdictBar counts={summary} />),
    },
    {
      id: 'breach',
      head: 'Last breach',
      width: '120px',
      cell: ({ summary }) => (summary === undefined ? null : <Moment at={summary.last_breach_at} form="ago" />),
    },
  ];
}
