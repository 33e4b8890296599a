// The list of traces: views, query field, histogram, facets, table and the trace that is looked at
// beside it. The address holds the whole state; rows, counts and histogram fail by themselves.
import { type ReactElement, type RefObject, useMemo, useRef, useState } from 'react';
import { useOrganization } from '../../client/session.ts';
import { suggestedValues, useFacets } from '../../lists/facets.ts';
import type { ListUrl } from '../../lists/list_url.ts';
import { QueryField } from '../../lists/query_field.tsx';
import type { SuggestedValue } from '../../lists/suggestions.ts';
import { TimeMenu } from '../../lists/time_menu.tsx';
import { type ChangeList, useListUrl } from '../../lists/use_list_url.ts';
import { useLoadQuery, useTracePages } from '../../lists/use_trace_rows.ts';
import { usePageRequest } from '../../shell/page_request.ts';
import { Button, ButtonLink } from '../../ui/button.tsx';
import { newMonitorHref } from '../monitors/new_monitor_href.ts';
import { monitorFromList } from '../monitors/from_list.ts';
import { ViewBar } from '../../views/view_bar.tsx';
import { ColumnMenu } from './column_menu.tsx';
import { FacetRail } from './facet_rail.tsx';
import { TraceList } from './trace_list.tsx';
import { TracesHistogram } from './traces_histogram.tsx';
import styles from './traces_screen.module.css';
import { useListKeys } from './use_list_keys.ts';
import { useRail } from './use_rail.ts';

/** The page. */
export default function TracesScreen(): ReactElement {
  const { org_id } = useOrganization();
  const [state, change] = useListUrl();
  const { query, renew } = useLoadQuery(state);
  const pages = useTracePages(org_id, query, state.sort);
  const ready = pages.isSuccess && !pages.isPlaceholderData;
  const facets = useFacets(org_id, query, ready);
  const field = useRef<HTMLInputElement>(null);
  const time = useRef<HTMLSpanElement>(null);
  const views = useRef<HTMLDivElement>(null);
  const [saving, setSaving] = useState(false);
  const rail = useRail();
  const values = useMemo(() => suggestedValues(facets.data?.data ?? []), [facets.data]);
  usePageRequest(`/v1/traces?${new URLSearchParams({ ...query, sort: state.sort })}`);
  useListKeys({
    field,
    time,
    views,
    change,
    onFacets: rail.toggle,
    onSave: () => {
      setSaving(true);
    },
  });
  return (
    <div className={styles.screen}>
      <ViewBar ref={views} page="traces" state={state} onChange={change} saving={saving} onSaving={setSaving} />
      <Tools state={state} change={change} field={field} time={time} values={values} rail={rail} />
      <div className={styles.content}>
        {rail.open && state.peek === null && (
          <FacetRail facets={facets} state={state} onChange={change} onClose={rail.toggle} />
        )}
        <div className={styles.column}>
          <TracesHistogram org_id={org_id} query={query} onChange={change} />
          <TraceList
            key={org_id}
            org_id={org_id}
            state={state}
            change={change}
            query={query}
            renew={renew}
            pages={pages}
          />
        </div>
      </div>
    </div>
  );
}

/** Begins a monitor of the traces that the filters choose. */
function MonitorThis({ state }: { state: ListUrl }): ReactElement | null {
  const { org_id, can } = useOrganization();
  if (!can('integrations:write')) return null;
  const { draft, left_out } = monitorFromList(state.filters);
  return (
    <ButtonLink href={newMonitorHref(org_id, draft, left_out)} icon="monitors">
      Monitor this
    </ButtonLink>
  );
}

interface ToolsProps {
  state: ListUrl;
  change: ChangeList;
  field: RefObject<HTMLInputElement | null>;
  time: RefObject<HTMLSpanElement | null>;
  values: readonly SuggestedValue[];
  rail: { open: boolean; toggle: () => void };
}

function Tools({ state, change, field, time, values, rail }: ToolsProps): ReactElement {
  return (
    <div className={styles.tools}>
      <Button
        icon="filter"
        keys="f"
        hint={rail.open ? 'Hide filters' : 'Show filters'}
        aria-pressed={rail.open}
        onClick={rail.toggle}
      />
      <QueryField state={state} onChange={change} values={values} input={field} />
      <TimeMenu
        ref={time}
        time={state.time}
        onChange={(next) => {
          change((now) => ({ ...now, time: next }));
        }}
      />
      <Button
        icon="live"
        keys="l"
        hint="Show new traces as they arrive"
        aria-pressed={state.live}
        onClick={() => {
          change((now) => ({ ...now, live: !now.live }));
        }}
      >
        Live
      </Button>
      <ColumnMenu state={state} onChange={change} />
      <MonitorThis state={state} />
    </div>
  );
}
