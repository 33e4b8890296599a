// The columns of the trace table: what each shows of a trace. Under 720 px one column holds two lines.
import type { ReactElement, ReactNode } from 'react';
import { Link } from 'wouter';
import { type ListColumn, trackOf } from '../../lists/columns.ts';
import type { Sort } from '../../lists/list_url.ts';
import { DurationBar, RowTags } from '../../lists/marks.tsx';
import { nameOf, type TraceItem } from '../../lists/trace_data.ts';
import { compact, count, exact, money, moneyExact, NONE, tokenFlow } from '../../text/format.ts';
import type { Column } from '../../ui/data_table.tsx';
import { OutcomeMark } from '../../ui/marks.tsx';
import { Moment } from '../../ui/moment.tsx';
import { PreviewModels, PreviewText, PreviewVerdicts } from './preview_cells.tsx';
import styles from './trace_columns.module.css';

export interface ColumnContext {
  columns: readonly ListColumn[];
  narrow: boolean;
  sort: Sort;
  onSort: (sort: Sort) => void;
  /** Longest duration of the list, the scale of the bars. */
  max_ms: number;
  hrefOf: (trace_id: string) => string;
  selected: ReadonlySet<string>;
  onToggle: (trace_id: string, range: boolean) => void;
}

/** Returns the columns of the table. */
export function traceColumns(context: ColumnContext): Column<TraceItem>[] {
  const lead: Column<TraceItem>[] = [
    {
      id: 'select',
      width: '32px',
      head: <Hidden>Selected</Hidden>,
      cell: (trace) => <Check {...context} trace={trace} />,
    },
    {
      id: 'outcome',
      width: '24px',
      head: <Hidden>Outcome</Hidden>,
      cell: ({ outcome }) => (
        <span className={styles.mark}>
          <OutcomeMark outcome={outcome} />
        </span>
      ),
    },
  ];
  if (context.narrow)
    return [
      ...lead,
      { id: 'lines', width: 'minmax(0, 1fr)', head: 'Trace', cell: (trace) => <Lines {...context} trace={trace} /> },
    ];
  return [...lead, ...context.columns.map((column) => tableColumn(column, context))];
}

function tableColumn(column: ListColumn, context: ColumnContext): Column<TraceItem> {
  const { sort, onSort } = context;
  const by = column.sort;
  return {
    id: column.id,
    head: column.label,
    width: trackOf(column),
    align: column.numeric ? 'end' : 'start',
    cell: (trace) => <Cell column={column} trace={trace} {...context} />,
    ...(by === null
      ? {}
      : {
          onSort: () => {
            onSort(by);
          },
        }),
    ...(by === sort ? { sorted: 'descending' as const } : {}),
  };
}

const Hidden = ({ children }: { children: ReactNode }): ReactElement => (
  <span className="visually-hidden">{children}</span>
);

type CellProps = ColumnContext & { trace: TraceItem };

function Check({ trace, selected, onToggle }: CellProps): ReactElement {
  return (
    <label className={styles.check}>
      <input
        type="checkbox"
        tabIndex={-1}
        checked={selected.has(trace.trace_id)}
        aria-label={`Select ${nameOf(trace)}`}
        onChange={(event) => {
          onToggle(trace.trace_id, (event.nativeEvent as MouseEvent).shiftKey);
        }}
      />
    </label>
  );
}

function Name({ trace, hrefOf }: CellProps): ReactElement {
  return (
    <Link href={hrefOf(trace.trace_id)} className={styles.name} tabIndex={-1} title={nameOf(trace)}>
      {nameOf(trace)}
    </Link>
  );
}

function Lines(props: CellProps): ReactElement {
  const { trace } = props;
  return (
    <span className={styles.lines}>
      <span className={styles.line}>
        <span className={styles.grow}>
          <Name {...props} />
        </span>
        <span className={styles.bar}>
          <DurationBar ms={trace.duration_ms} max_ms={props.max_ms} outcome={trace.outcome} />
        </span>
      </span>
      <span className={styles.second}>
        <Moment at={trace.started_at} />
        <span className={styles.grow}>{trace.agent_id}</span>
        <span>{compact(trace.input_tokens + trace.output_tokens)} tokens</span>
        <span>{money(trace.cost_usd)}</span>
      </span>
    </span>
  );
}

function Cell({ column, ...props }: CellProps & { column: ListColumn }): ReactElement {
  const { trace } = props;
  switch (column.id) {
    case 'started_at':
      return <Moment at={trace.started_at} />;
    case 'name':
      return <Name {...props} />;
    case 'agent_id':
      return <Text value={trace.agent_id} />;
    case 'duration_ms':
      return (
        <span title={`${exact(trace.duration_ms)} ms`} className={styles.full}>
          <DurationBar ms={trace.duration_ms} max_ms={props.max_ms} outcome={trace.outcome} />
        </span>
      );
    case 'cost_usd':
      return <span title={moneyExact(trace.cost_usd)}>{money(trace.cost_usd)}</span>;
    case 'tokens':
      return (
        <span title={`${exact(trace.input_tokens)} input tokens, ${exact(trace.output_tokens)} output tokens`}>
          {tokenFlow(trace.input_tokens, trace.output_tokens)}
        </span>
      );
    case 'spans':
      return <span>{count(trace.span_count)}</span>;
    case 'tags':
      return <RowTags tags={trace.tags} />;
    case 'user_id':
      return <Text value={trace.user_id} />;
    case 'session_id':
      return <Text value={trace.session_id} />;
    case 'verdicts':
      return <PreviewVerdicts trace_id={trace.trace_id} />;
    case 'models':
      return <PreviewModels trace_id={trace.trace_id} />;
    case 'first_text':
    case 'answer':
    case 'first_error':
      return <PreviewText trace_id={trace.trace_id} part={column.id} />;
  }
}

/** A text of one line; the whole text stands in the tooltip and in the panel that Space opens. */
export function Text({ value }: { value: string | null | undefined }): ReactElement {
  if (value === null || value === undefined || value === '') return <span className={styles.none}>{NONE}</span>;
  return (
    <span className={styles.text} title={value}>
      {value}
    </span>
  );
}
