// One judge: its definition, its pass rate by day and version, the traces that failed, its versions
// and its evals. `?edit=1` opens the editor.
import { useQuery } from '@tanstack/react-query';
import type { ReactElement } from 'react';
import { Link } from 'wouter';
import { apiQuery } from '../../client/api.ts';
import { useOrganization } from '../../client/session.ts';
import { useKeys } from '../../shell/keys.ts';
import { usePageRequest } from '../../shell/page_request.ts';
import { usePageTitle } from '../../shell/page_title.ts';
import { useRouteParams } from '../../shell/route_params.ts';
import { exact, percent } from '../../text/format.ts';
import { Button, ButtonLink } from '../../ui/button.tsx';
import { ErrorPanel } from '../../ui/error_panel.tsx';
import { Moment } from '../../ui/moment.tsx';
import { Skeleton } from '../../ui/skeleton.tsx';
import { Tabs } from '../../ui/tabs.tsx';
import { choice, codec, flag } from '../../url/search_params.ts';
import { useSearchState } from '../../url/use_search_state.ts';
import lists from '../sessions/sessions.module.css';
import { GrantLink } from '../settings/grant_link.tsx';
import { newMonitorHref } from '../monitors/new_monitor_href.ts';
import { draftOf, type Judge, RULES, type RuleType } from './draft.ts';
import { EditorForm } from './editor_form.tsx';
import { JudgeDays } from './judge_days.tsx';
import { JudgeEvals } from './judge_evals.tsx';
import { JudgeTraces } from './judge_traces.tsx';
import { JudgeVersions } from './judge_versions.tsx';
import { scopeWords } from './scope_words.ts';
import { useEnabled } from './use_enabled.ts';

const TABS = ['days', 'traces', 'versions', 'evals'] as const;
const CODEC = codec({ edit: flag(), tab: choice(TABS, 'days') });

/** The page. */
export default function JudgeScreen(): ReactElement {
  const { org_id } = useOrganization();
  const judge_id = useRouteParams()('judge_id');
  const { data, error, refetch } = useQuery(apiQuery(org_id, '/v1/judges/{judge_id}', { path: { judge_id } }));
  usePageTitle(data?.data.name ?? null);
  usePageRequest(`/v1/judges/${encodeURIComponent(judge_id)}`);
  if (data !== undefined) return <Loaded judge={data.data} />;
  return (
    <div className={lists.page}>
      {error === null ? (
        <Skeleton rows={8} height={20} />
      ) : (
        <ErrorPanel error={error} what="the judge" onRetry={() => void refetch()} />
      )}
    </div>
  );
}

function Loaded({ judge }: { judge: Judge }): ReactElement {
  const { can } = useOrganization();
  const [{ edit }] = useSearchState(CODEC);
  if (edit && can('judges:write'))
    return <EditorForm key={`${judge.judge_id} ${judge.version}`} judge={judge} initial={draftOf(judge)} />;
  return <Shown judge={judge} />;
}

function Shown({ judge }: { judge: Judge }): ReactElement {
  const [{ tab }, change] = useSearchState(CODEC);
  return (
    <div className={lists.page}>
      <Actions
        judge={judge}
        onEdit={() => {
          change({ edit: true });
        }}
      />
      <Definition judge={judge} />
      <Tabs
        label="Parts of the judge"
        tabs={[
          { id: 'days', label: 'By day' },
          { id: 'traces', label: 'Judged traces' },
          { id: 'versions', label: 'Versions' },
          { id: 'evals', label: 'Evals' },
        ]}
        selected={tab}
        onSelect={(next) => {
          change({ tab: next as (typeof TABS)[number] });
        }}
      >
        {tab === 'days' && <JudgeDays judge_id={judge.judge_id} />}
        {tab === 'traces' && <JudgeTraces judge_id={judge.judge_id} />}
        {tab === 'versions' && <JudgeVersions judge_id={judge.judge_id} />}
        {tab === 'evals' && <JudgeEvals judge_id={judge.judge_id} />}
      </Tabs>
    </div>
  );
}

/** Actions that the person may take on the judge. */
function Actions({ judge, onEdit }: { judge: Judge; onEdit: () => void }): ReactElement {
  const { org_id, can } = useOrganization();
  const enabled = useEnabled(judge);
  const mayWrite = can('judges:write');
  const mayRun = can('judges:run');
  useKeys('Judge', [
    ...(mayWrite
      ? [
          {
            keys: 'e',
            label: 'Edit the judge',
            run: onEdit,
          },
        ]
      : []),
  ]);
  const org = `/o/${encodeURIComponent(org_id)}`;
  return (
    <div className={lists.actions}>
      {mayWrite && (
        <Button look="primary" keys="e" onClick={onEdit}>
          Edit judge
        </Button>
      )}
      {mayRun && (
        <ButtonLink href={`${org}/evals?new=1&judge_id=${encodeURIComponent(judge.judge_id)}`} icon="evals">
          Run eval
        </ButtonLink>
      )}
      {mayWrite && (
        <Button
          busy={enabled.isPending}
          onClick={() => {
            enabled.mutate(!judge.enabled);
          }}
        >
          {judge.enabled ? 'Disable judge' : 'Enable judge'}
        </Button>
      )}
      {can('integrations:write') && can('traces:read') && (
        <ButtonLink
          href={newMonitorHref(org_id, {
            name: judge.name.slice(0, 100),
            view: 'scores',
            measure: 'score',
            agg: 'avg',
            side: 'below',
            limit: String(judge.threshold.pass),
            window: '60',
            filters: [{ field: 'judge', op: 'eq', value: judge.judge_id }],
          })}
          icon="monitors"
        >
          Monitor this
        </ButtonLink>
      )}
      <GrantLink type="judge" id={judge.judge_id} />
      <Link href={`${org}/traces?judge_id=${encodeURIComponent(judge.judge_id)}&verdict=fail&t=7d`}>
        Failing traces in the list of traces
      </Link>
    </div>
  );
}

function Definition({ judge }: { judge: Judge }): ReactElement {
  const { org_id } = useOrganization();
  const stats = useQuery(
    apiQuery(org_id, '/v1/judges/{judge_id}/stats', {
      path: { judge_id: judge.judge_id },
      query: { days: 7 },
    }),
  );
  const { threshold } = judge;
  const facts: [string, ReactElement | string][] = [
    ['Pass rate, 7 d', percent(stats.data?.data.pass_rate)],
    ['Rule', judge.kind === 'llm' ? `Asks ${judge.model ?? 'a model'}` : ruleWords(judge)],
    ['Scope', scopeWords(judge)],
    [
      'Thresholds',
      `pass ${exact(threshold.pass)}${threshold.warn === undefined ? '' : `, warn ${exact(threshold.warn)}`}`,
    ],
    ['Live', judge.enabled ? 'Enabled' : 'Disabled'],
    ['Version', String(judge.version)],
    ['Changed', <Moment key="changed" at={judge.updated_at} />],
  ];
  return (
    <dl className={lists.sums}>
      {facts.map(([label, value]) => (
        <div key={label}>
          <dt>{label}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

/** Returns the rule in words, with its parameter. */
function ruleWords({ rule }: Judge): string {
  const kind = RULES[rule?.['type'] as RuleType];
  const given = kind.parameter === null ? undefined : rule?.[kind.parameter];
  const text = typeof given === 'string' ? given : given === undefined ? '' : JSON.stringify(given);
  const short = text.length > 80 ? `${text.slice(0, 80)}…` : text;
  return short === '' ? kind.label : `${kind.label}: ${short}`;
}
