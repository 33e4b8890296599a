// The registry of agents with their numbers of 7 days, and the ids that send without a registration.
import { keepPreviousData, useInfiniteQuery, useQuery } from '@tanstack/react-query';
import { type ReactElement, useMemo, useState } from 'react';
import { Link } from 'wouter';
import { useOrganization } from '../../client/session.ts';
import { useSettled } from '../../lists/use_settled.ts';
import { useKeys } from '../../shell/keys.ts';
import { usePageRequest } from '../../shell/page_request.ts';
import { count } from '../../text/format.ts';
import { Button } from '../../ui/button.tsx';
import { Chip } from '../../ui/chip.tsx';
import { EmptyState } from '../../ui/empty_state.tsx';
import { ErrorPanel } from '../../ui/error_panel.tsx';
import { Input, Select } from '../../ui/field.tsx';
import { choice, codec, flag, optionalChoice, text } from '../../url/search_params.ts';
import { useSearchState } from '../../url/use_search_state.ts';
import lists from '../sessions/sessions.module.css';
import { agentsQuery, sendersQuery, useAgentNumbers } from './agent_data.ts';
import { AgentRows } from './agent_rows.tsx';
import { Senders } from './senders.tsx';
import { TokenDialog } from './token_dialog.tsx';
import styles from './agents.module.css';

const FRAMEWORKS = ['chatcompletion', 'messages', 'chain', 'custom', 'app', 'otlp', 'mcp'] as const;
const CODEC = codec({
  show: choice(['registered', 'unregistered'], 'registered'),
  name: text(),
  framework: optionalChoice(FRAMEWORKS),
  archived: flag(),
});
type State = ReturnType<typeof CODEC.parse>;
type Change = (patch: Partial<State>, options?: { replace?: boolean }) => void;

/** The page. */
export default function AgentsScreen(): ReactElement {
  const { org_id, can } = useOrganization();
  const [state, change] = useSearchState(CODEC);
  const [makes, setMakes] = useState(false);
  const senders = useQuery(sendersQuery(org_id));
  const mayInvite = can('agents:invite');
  const make = (): void => {
    setMakes(true);
  };
  useKeys('Agents', mayInvite ? [{ keys: 'n', label: 'Create a register token', run: make }] : []);
  return (
    <div className={lists.screen}>
      <div className={lists.tools}>
        {(['registered', 'unregistered'] as const).map((one) => (
          <Chip
            key={one}
            pressed={state.show === one}
            onToggle={() => {
              change({ show: one });
            }}
          >
            {one === 'registered' ? 'Registered' : senderWords(senders.data?.data.length)}
          </Chip>
        ))}
        <span className={styles.push} />
        {state.show === 'registered' && <Filters state={state} onChange={change} />}
        {mayInvite && (
          <Button look="primary" icon="plus" keys="n" onClick={make}>
            Create register token
          </Button>
        )}
      </div>
      {state.show === 'registered' ? (
        <Registered state={state} onChange={change} />
      ) : (
        <div className={lists.page}>
          <Senders senders={senders} />
        </div>
      )}
      {makes && (
        <TokenDialog
          agent_id={null}
          onClose={() => {
            setMakes(false);
          }}
        />
      )}
    </div>
  );
}

const senderWords = (senders: number | undefined): string =>
  senders === undefined ? 'Not registered' : `Not registered (${count(senders)})`;

function Filters({ state, onChange }: { state: State; onChange: Change }): ReactElement {
  return (
    <>
      <span className={styles.name}>
        <Input
          aria-label="Name contains"
          placeholder="Name contains"
          data-search-field=""
          value={state.name}
          onChange={({ target }) => {
            onChange({ name: target.value }, { replace: true });
          }}
        />
      </span>
      <span>
        <Select
          aria-label="Framework"
          value={state.framework ?? ''}
          onChange={({ target }) => {
            onChange({ framework: FRAMEWORKS.find((one) => one === target.value) ?? null });
          }}
        >
          <option value="">All frameworks</option>
          {FRAMEWORKS.map((one) => (
            <option key={one}>{one}</option>
          ))}
        </Select>
      </span>
      <Chip
        pressed={state.archived}
        onToggle={() => {
          onChange({ archived: !state.archived });
        }}
      >
        With archived
      </Chip>
    </>
  );
}

function Registered({ state, onChange }: { state: State; onChange: Change }): ReactElement {
  const { org_id, can } = useOrganization();
  const name = useSettled(state.name);
  const { framework, archived } = state;
  const pages = useInfiniteQuery({
    ...agentsQuery(org_id, { name, framework, archived }),
    placeholderData: keepPreviousData,
  });
  const groups = useMemo(() => pages.data?.pages.map(({ data }) => data) ?? [], [pages.data]);
  const mayMeasure = can('traces:read') && can('costs:read');
  const { numbers, error, refetch } = useAgentNumbers(org_id, groups, mayMeasure);
  const total = pages.data?.pages[0]?.meta.total;
  usePageRequest(`/orgs/${encodeURIComponent(org_id)}/agents`);
  if (pages.error !== null && pages.data === undefined)
    return (
      <div className={lists.state}>
        <ErrorPanel error={pages.error} what="the agents" onRetry={() => void pages.refetch()} />
      </div>
    );
  if (total === 0 && !pages.isPlaceholderData)
    return (
      <div className={lists.state}>
        <NoAgents
          filtered={name !== '' || framework !== null || archived}
          onShowAll={() => {
            onChange({ name: '', framework: null, archived: false });
          }}
        />
      </div>
    );
  return (
    <>
      {error !== null && (
        <div className={lists.state}>
          <ErrorPanel error={error} what="the numbers of the agents" onRetry={refetch} />
        </div>
      )}
      <AgentRows
        pages={pages}
        agents={groups.flat()}
        numbers={mayMeasure ? numbers : null}
        total={total}
        address={`agents ${name} ${framework ?? ''} ${archived}`}
      />
    </>
  );
}

function NoAgents({ filtered, onShowAll }: { filtered: boolean; onShowAll: () => void }): ReactElement {
  const { org_id, can } = useOrganization();
  if (filtered)
    return (
      <EmptyState
        title="No agent matches these filters"
        action={<Button onClick={onShowAll}>Show all agents</Button>}
      />
    );
  return (
    <EmptyState
      title="No agents"
      action={<Link href={`/o/${encodeURIComponent(org_id)}/agents?show=unregistered`}>Show who sends events</Link>}
    >
      An agent that registers stands here with its version, its traces and its costs. The first registration needs a
      register token{can('agents:invite') ? '.' : ', which an admin of the organization creates.'}
    </EmptyState>
  );
}
