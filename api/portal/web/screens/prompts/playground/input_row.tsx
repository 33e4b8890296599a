// One input of the playground: the values of its variables, and below them the answer of each column,
// or how the answers differ from that of the first column.
import { type ReactElement, useId } from 'react';
import { Link } from 'wouter';
import { DiffView } from '../../../diff/diff_view.tsx';
import { useOrganization } from '../../../client/session.ts';
import { RequestError } from '../../../client/error.ts';
import { duration, money } from '../../../text/format.ts';
import { Button } from '../../../ui/button.tsx';
import { cx } from '../../../ui/cx.ts';
import { Moment } from '../../../ui/moment.tsx';
import fieldStyles from '../../../ui/field.module.css';
import styles from '../prompts.module.css';
import { textOf, valueOf, type Values } from '../template.ts';
import type { Run } from './runs.ts';
import { columnName, type PlaygroundInput, runKey } from './state.ts';
import type { Playground, ShownColumn } from './use_playground.ts';

interface InputRowProps {
  playground: Playground;
  input: PlaygroundInput;
  /** Number of the input, from 1. */
  number: number;
  /** Cost of a trace, as soon as it is stored. */
  costOf: (trace_id: string) => number | undefined;
  showsDiff: boolean;
  onReplay: (trace_id: string) => void;
}

/** The values and the answers. */
export function InputRow({ playground, input, number, costOf, showsDiff, onReplay }: InputRowProps): ReactElement {
  const { columns, runs, inputs, names } = playground;
  const [first, ...others] = columns.map((column) => ({ column, run: runs.get(runKey(column, input)) }));
  return (
    <section className={cx(styles.section, styles.input)} aria-label={`Input ${number}`}>
      <div className={styles.line}>
        <h3>Input {number}</h3>
        <Source input={input} onReplay={onReplay} />
        <Button
          look="quiet"
          icon="x"
          hint={`Remove input ${number}`}
          onClick={() => {
            inputs.remove(input.id);
          }}
        />
      </div>
      <div className={styles.columns}>
        {names.map((name) => (
          <ValueField
            key={name}
            name={name}
            number={number}
            values={input.values}
            onChange={(values) => {
              inputs.change(input.id, values);
            }}
          />
        ))}
      </div>
      {first?.run !== undefined && showsDiff && others.length > 0 ? (
        others.map(({ column, run }) => (
          <DiffView
            key={column.id}
            level={4}
            title={`${columnName(first.column)} and ${columnName(column)}`}
            left={first.run?.text ?? ''}
            right={run?.text ?? ''}
            sides={[sideOf(first.column), sideOf(column)]}
          />
        ))
      ) : (
        <div className={styles.columns}>
          {columns.map((column) => (
            <Answer
              key={column.id}
              column={column}
              run={runs.get(runKey(column, input))}
              number={number}
              costOf={costOf}
            />
          ))}
        </div>
      )}
    </section>
  );
}

const sideOf = (column: ShownColumn): string => `${columnName(column)}, ${column.model}`;

function Source({ input: { source }, onReplay }: Pick<InputRowProps, 'input' | 'onReplay'>): ReactElement {
  const { org_id } = useOrganization();
  if (source.kind === 'hand') return <span className={styles.quiet}>by hand</span>;
  if (source.kind === 'item')
    return (
      <span className={styles.quiet}>
        item {source.item_index} of {source.dataset}
      </span>
    );
  const { trace_id, span_id, started_at } = source;
  return (
    <>
      <span className={styles.quiet}>
        <Link href={tracePath(org_id, trace_id, span_id)}>real call</Link> <Moment at={started_at} form="ago" />
      </span>
      <Button
        look="quiet"
        onClick={() => {
          onReplay(trace_id);
        }}
      >
        Replay on trace
      </Button>
    </>
  );
}

const tracePath = (org_id: string, trace_id: string, span_id?: string): string =>
  `/o/${encodeURIComponent(org_id)}/traces/${encodeURIComponent(trace_id)}${span_id === undefined ? '' : `?span=${encodeURIComponent(span_id)}`}`;

interface ValueFieldProps {
  name: string;
  number: number;
  values: Values;
  onChange: (values: Values) => void;
}

function ValueField({ name, number, values, onChange }: ValueFieldProps): ReactElement {
  const id = useId();
  const value = valueOf(name, values);
  return (
    <div className={fieldStyles.field}>
      <label htmlFor={id} className={fieldStyles.label}>
        {name}
      </label>
      <textarea
        id={id}
        className={fieldStyles.input}
        aria-label={`${name} of input ${number}`}
        rows={2}
        value={textOf(value)}
        onChange={(event) => {
          onChange({ ...values, [name]: event.target.value });
        }}
      />
    </div>
  );
}

interface AnswerProps {
  column: ShownColumn;
  run: Run | undefined;
  number: number;
  costOf: (trace_id: string) => number | undefined;
}

function Answer({ column, run, number, costOf }: AnswerProps): ReactElement | null {
  const { org_id } = useOrganization();
  if (run === undefined) return null;
  const { status, text, error, trace_id, duration_ms } = run;
  const cost = trace_id === null ? undefined : costOf(trace_id);
  const isBusy = status === 'running' || status === 'waiting';
  return (
    <div role="group" aria-label={`Answer of ${columnName(column)} to input ${number}`} className={styles.column}>
      <div className={styles.quiet}>
        {status === 'waiting' && 'Waiting'}
        {status === 'running' && 'Running'}
        {status === 'stopped' && 'Stopped'}
        {status === 'failed' && 'Failed'}
        {status === 'done' && duration(duration_ms)}
        {cost !== undefined && `, ${money(cost)}`}
        {trace_id !== null && (
          <>
            {', '}
            <Link href={tracePath(org_id, trace_id)}>trace</Link>
          </>
        )}
      </div>
      {status === 'failed' && <p className={styles.failed}>{reasonOf(error)}</p>}
      {/* Keys scroll an answer that is longer than its field. */}
      <div
        className={styles.answer}
        tabIndex={0}
        role="region"
        aria-label={`Text of ${columnName(column)} to input ${number}`}
        aria-busy={isBusy || undefined}
      >
        {text}
      </div>
    </div>
  );
}

function reasonOf(error: unknown): string {
  if (error instanceof RequestError) return error.detail;
  return error instanceof Error ? error.message : String(error);
}
