// The list of prompts: name, current version, variables, and how much each was used.
import { keepPreviousData, useInfiniteQuery } from '@tanstack/react-query';
import { type ReactElement, useMemo, useState } from 'react';
import { Link } from 'wouter';
import { get } from '../../client/api.ts';
import { useOrganization } from '../../client/session.ts';
import { ListTable } from '../../lists/list_table.tsx';
import { usePageRequest } from '../../shell/page_request.ts';
import { count } from '../../text/format.ts';
import { Button } from '../../ui/button.tsx';
import type { Column } from '../../ui/data_table.tsx';
import { EmptyState } from '../../ui/empty_state.tsx';
import { ErrorPanel } from '../../ui/error_panel.tsx';
import { Input } from '../../ui/field.tsx';
import { Moment } from '../../ui/moment.tsx';
import { useSearchState } from '../../url/use_search_state.ts';
import lists from '../sessions/sessions.module.css';
import { FirstPrompt } from './first_prompt.tsx';
import { promptPath, type PromptItem } from './prompt_api.ts';
import { promptsUrl } from './prompts_url.ts';
import { type PromptDraft, SavePrompt } from './save_prompt.tsx';
import { CallsCell, ScoreCell, UsageProvider } from './usage_cells.tsx';

const PAGE_ROWS = 100;

type Layer = { kind: 'create'; draft: PromptDraft } | { kind: 'choose' } | null;
const BLANK: PromptDraft = { template: '', model: '' };

function usePrompts(org_id: string, name: string) {
  const filter = name === '' ? {} : { name };
  const pages = useInfiniteQuery({
    queryKey: [org_id, '/v1/prompts', filter],
    queryFn: ({ pageParam, signal }) =>
      get(org_id, '/v1/prompts', { query: { ...filter, limit: PAGE_ROWS, offset: pageParam } }, { signal }),
    initialPageParam: 0,
    getNextPageParam: (last, all) => (last.meta.has_more ? all.length * PAGE_ROWS : null),
    placeholderData: keepPreviousData,
  });
  const { data } = pages;
  const rows = useMemo(() => data?.pages.flatMap((page) => page.data) ?? [], [data]);
  return { pages, rows, total: data?.pages[0]?.meta.total };
}

/** The page. */
export default function PromptsScreen(): ReactElement {
  const { org_id, can } = useOrganization();
  const [{ name }, change] = useSearchState(promptsUrl);
  const list = usePrompts(org_id, name);
  const { pages, total } = list;
  const [layer, setLayer] = useState<Layer>(null);
  const mayWrite = can('prompts:write');
  const create = (): void => {
    if (mayWrite) setLayer({ kind: 'create', draft: BLANK });
  };
  const mayChoose = mayWrite && can('traces:read');
  const choose = (): void => {
    setLayer({ kind: 'choose' });
  };
  usePageRequest(`/v1/prompts${name === '' ? '' : `?${new URLSearchParams({ name })}`}`);
  return (
    <div className={lists.screen}>
      <Tools
        total={total}
        name={name}
        onName={(next) => {
          change({ name: next }, { replace: true });
        }}
        onCreate={mayWrite ? create : null}
        onChoose={mayChoose ? choose : null}
      />
      {pages.error !== null && total === undefined ? (
        <div className={lists.state}>
          <ErrorPanel
            error={pages.error}
            what="the prompts"
            onRetry={() => {
              void pages.refetch();
            }}
          />
        </div>
      ) : total === 0 && !pages.isPlaceholderData ? (
        <div className={lists.state}>
          <NoPrompts name={name} onCreate={mayWrite ? create : null} onChoose={mayChoose ? choose : null} />
        </div>
      ) : (
        <UsageProvider org_id={org_id}>
          <PromptRows list={list} address={name} onCreate={create} />
        </UsageProvider>
      )}
      {layer?.kind === 'create' && (
        <SavePrompt
          name={null}
          draft={layer.draft}
          onClose={() => {
            setLayer(null);
          }}
        />
      )}
      {layer?.kind === 'choose' && (
        <FirstPrompt
          onClose={() => {
            setLayer(null);
          }}
          onChosen={(draft) => {
            setLayer({ kind: 'create', draft });
          }}
        />
      )}
    </div>
  );
}

interface NoPromptsProps {
  name: string;
  /** Null for a person who may not create prompts. */
  onCreate: (() => void) | null;
  onChoose: (() => void) | null;
}

type ToolsProps = NoPromptsProps & {
  total: number | undefined;
  onName: (name: string) => void;
};

function Tools({ total, name, onName, onCreate, onChoose }: ToolsProps): ReactElement {
  return (
    <div className={lists.tools}>
      <span className={lists.total} role="status">
        {total === undefined ? '' : `${count(total)} ${total === 1 ? 'prompt' : 'prompts'}`}
      </span>
      <div>
        <Input
          type="search"
          data-search-field=""
          aria-label="Find prompts by name"
          placeholder="Find by name"
          maxLength={128}
          value={name}
          onChange={(event) => {
            onName(event.target.value);
          }}
        />
      </div>
      {onChoose !== null && <Button onClick={onChoose}>From a real call</Button>}
      {onCreate !== null && (
        <Button look="primary" icon="plus" keys="n" onClick={onCreate}>
          Create prompt
        </Button>
      )}
    </div>
  );
}

function NoPrompts({ name, onCreate, onChoose }: NoPromptsProps): ReactElement {
  if (name !== '')
    return <EmptyState title="No prompt has this in its name">Another part of the name may help.</EmptyState>;
  return (
    <EmptyState
      title="No prompts yet"
      action={
        <>
          {onChoose !== null && <Button onClick={onChoose}>From a real call</Button>}
          {onCreate !== null && (
            <Button look="primary" onClick={onCreate}>
              Create prompt
            </Button>
          )}
        </>
      }
    >
      A prompt is a template with versions. This page shows its versions with their calls, cost and scores, and a
      playground.
    </EmptyState>
  );
}

interface PromptRowsProps {
  list: ReturnType<typeof usePrompts>;
  address: string;
  onCreate: () => void;
}

const nameOf = ({ name }: PromptItem): string => name;

function PromptRows({ list: { rows, pages, total }, address, onCreate }: PromptRowsProps): ReactElement {
  const { org_id } = useOrganization();
  const hrefOf = (name: string): string => promptPath(org_id, name);
  return (
    <ListTable
      label="Prompts"
      noun="prompt"
      address={`prompts ${address}`}
      rows={rows}
      rowKey={nameOf}
      columns={(narrow) => columns(narrow, hrefOf)}
      hrefOf={({ name }) => hrefOf(name)}
      keys={() => [{ keys: 'n', label: 'Create a prompt', run: onCreate }]}
      pages={pages}
      total={total}
      loading={pages.isPending}
    />
  );
}

function columns(narrow: boolean, hrefOf: (name: string) => string): Column<PromptItem>[] {
  const nameCell = ({ name }: PromptItem): ReactElement => (
    <Link href={hrefOf(name)} className={lists.name} tabIndex={-1} title={name}>
      {name}
    </Link>
  );
  if (narrow)
    return [
      {
        id: 'lines',
        head: 'Prompt',
        width: 'minmax(0, 1fr)',
        cell: (prompt) => (
          <span className={lists.lines}>
            <span className={lists.line}>
              <span className={lists.grow}>{nameCell(prompt)}</span>
              <Moment at={prompt.created_at} form="ago" />
            </span>
            <span className={lists.second}>
              <span className={lists.grow}>version {prompt.version}</span>
              <CallsCell name={prompt.name} unit />
            </span>
          </span>
        ),
      },
    ];
  return [
    { id: 'name', head: 'Prompt', width: 'minmax(160px, 2fr)', cell: nameCell },
    { id: 'version', head: 'Version', width: '96px', cell: ({ version }) => <code>{version}</code> },
    {
      id: 'variables',
      head: 'Variables',
      width: 'minmax(120px, 2fr)',
      cell: ({ variables }) => <bdi className={lists.quiet}>{variables.join(', ')}</bdi>,
    },
    { id: 'model', head: 'Model', width: 'minmax(96px, 1fr)', cell: ({ model }) => model ?? '–' },
    { id: 'calls', head: 'Calls, 7 days', width: '104px', align: 'end', cell: ({ name }) => <CallsCell name={name} /> },
    { id: 'score', head: 'Score, 7 days', width: 'minmax(120px, 2fr)', cell: ({ name }) => <ScoreCell name={name} /> },
    {
      id: 'created',
      head: 'Newest version',
      width: '140px',
      cell: ({ created_at }) => <Moment at={created_at} />,
    },
  ];
}
