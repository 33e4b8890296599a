// The audit log: who changed what, when and from where, by action, person, thing and time. A record opens
// with its changes before and after.
import { useInfiniteQuery } from '@tanstack/react-query';
import { type ReactElement, useMemo, useState } from 'react';
import { useOrganization } from '../../client/session.ts';
import { ListTable } from '../../lists/list_table.tsx';
import { RANGES, type TimeRange } from '../../lists/list_url.ts';
import { loadTime } from '../../lists/load_time.ts';
import { TimeMenu } from '../../lists/time_menu.tsx';
import { useSettled } from '../../lists/use_settled.ts';
import { usePageRequest } from '../../shell/page_request.ts';
import { count } from '../../text/format.ts';
import { oneLine } from '../../trace/text/one_line.ts';
import { Button } from '../../ui/button.tsx';
import { Chip } from '../../ui/chip.tsx';
import { EmptyState } from '../../ui/empty_state.tsx';
import { ErrorPanel } from '../../ui/error_panel.tsx';
import { Input } from '../../ui/field.tsx';
import { codec, choice, moment, text } from '../../url/search_params.ts';
import { useSearchState } from '../../url/use_search_state.ts';
import lists from '../sessions/sessions.module.css';
import { type AuditFilters, auditQuery, type AuditRecord } from './audit_data.ts';
import { ActionField } from './action_field.tsx';
import { columnsOf } from './audit_columns.tsx';
import { ExportButton } from './export_button.tsx';
import { RecordDialog } from './record_dialog.tsx';
import styles from './audit.module.css';

const HOUR_MS = 3_600_000;
const LENGTHS_MS = { '1h': 1, '6h': 6, '24h': 24, '7d': 168, '30d': 720, '90d': 2160 } as const;
const CODEC = codec({
  action: text(),
  actor_id: text(),
  target_id: text(),
  t: choice(RANGES, '30d'),
  since: moment(),
  until: moment(),
});
type State = ReturnType<typeof CODEC.parse>;
type Change = (patch: Partial<State>, options?: { replace?: boolean }) => void;

/** The page. */
export default function AuditScreen(): ReactElement {
  const { org_id } = useOrganization();
  const [state, change] = useSearchState(CODEC);
  const [shown, setShown] = useState<AuditRecord | null>(null);
  const filters = useFilters(state);
  const pages = useInfiniteQuery(auditQuery(org_id, filters));
  const asked = new URLSearchParams({ ...filters }).toString();
  usePageRequest(`/orgs/${encodeURIComponent(org_id)}/audit-log?${asked}`);
  const rows = useMemo(() => pages.data?.pages.flatMap(({ data }) => data) ?? [], [pages.data]);
  const total = pages.data?.pages[0]?.meta.total;
  return (
    <div className={lists.screen}>
      <Tools state={state} onChange={change} filters={filters} total={total} />
      {pages.error !== null && pages.data === undefined ? (
        <div className={lists.state}>
          <ErrorPanel error={pages.error} what="the audit log" onRetry={() => void pages.refetch()} />
        </div>
      ) : total === 0 ? (
        <div className={lists.state}>
          <Nothing state={state} onChange={change} />
        </div>
      ) : (
        <ListTable
          label="Audit log"
          noun="record"
          address={`audit ${asked}`}
          rows={rows}
          rowKey={auditIdOf}
          columns={(narrow) => columnsOf(org_id, narrow)}
          onOpen={setShown}
          pages={pages}
          total={total}
          loading={pages.isPending}
        />
      )}
      {shown !== null && (
        <RecordDialog
          record={shown}
          onClose={() => {
            setShown(null);
          }}
        />
      )}
    </div>
  );
}

const auditIdOf = ({ audit_id }: AuditRecord): string => audit_id;

const timeOf = ({ t, since, until }: State): TimeRange =>
  since === null && until === null ? { last: t } : { since, until };

/** Returns the filters of the request; what is typed counts once the person pauses. */
function useFilters(state: State): AuditFilters {
  const action = useSettled(state.action.trim());
  const actor_id = useSettled(state.actor_id.trim());
  const { target_id, t, since, until } = state;
  return useMemo(() => {
    const fixed = since !== null || until !== null;
    const begin = loadTime(`audit ${t}`, Date.now()) - LENGTHS_MS[t] * HOUR_MS;
    return {
      ...(action === '' ? {} : { action }),
      ...(actor_id === '' ? {} : { actor_id }),
      ...(target_id === '' ? {} : { target_id }),
      ...(fixed ? {} : { since: new Date(begin).toISOString() }),
      ...(since === null ? {} : { since }),
      ...(until === null ? {} : { until }),
    };
  }, [action, actor_id, target_id, t, since, until]);
}

interface ToolsProps {
  state: State;
  onChange: Change;
  filters: AuditFilters;
  total: number | undefined;
}

function Tools({ state, onChange, filters, total }: ToolsProps): ReactElement {
  return (
    <div className={lists.tools}>
      <span className={lists.total} role="status">
        {total === undefined ? '' : `${count(total)} ${total === 1 ? 'change' : 'changes'}`}
      </span>
      {state.target_id !== '' && (
        <Chip
          field="target_id"
          removeLabel="Show the changes of all things"
          onRemove={() => {
            onChange({ target_id: '' });
          }}
        >
          {oneLine(state.target_id)}
        </Chip>
      )}
      <span className={styles.field}>
        <ActionField
          value={state.action}
          onChange={(action) => {
            onChange({ action }, { replace: true });
          }}
        />
      </span>
      <span className={styles.field}>
        <Input
          aria-label="Id of the person or key"
          placeholder="Id of the person or key"
          value={state.actor_id}
          onChange={({ target }) => {
            onChange({ actor_id: target.value }, { replace: true });
          }}
        />
      </span>
      <TimeMenu
        time={timeOf(state)}
        onChange={(time) => {
          onChange('last' in time ? { t: time.last, since: null, until: null } : time);
        }}
      />
      <ExportButton filters={filters} total={total} />
    </div>
  );
}

function Nothing({ state, onChange }: { state: State; onChange: Change }): ReactElement {
  const filtered = state.action !== '' || state.actor_id !== '' || state.target_id !== '';
  if (!filtered)
    return (
      <EmptyState title="Nothing changed in this time">
        Every change that a person, an API key, the operator or the system makes stands here within about a second. The
        sending of telemetry is no change.
      </EmptyState>
    );
  return (
    <EmptyState
      title="No change matches these filters in this time"
      action={
        <Button
          onClick={() => {
            onChange({ action: '', actor_id: '', target_id: '' });
          }}
        >
          Show all changes
        </Button>
      }
    />
  );
}
