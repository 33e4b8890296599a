// The playground of a prompt: up to three columns of a version or a draft with a model, on the same
// inputs. The calls stream through the gateway and are traces.
import { useQuery } from '@tanstack/react-query';
import { type CSSProperties, type ReactElement, useState } from 'react';
import { apiQuery } from '../../../client/api.ts';
import { useOrganization } from '../../../client/session.ts';
import { useKeys } from '../../../shell/keys.ts';
import { Button } from '../../../ui/button.tsx';
import { EmptyState } from '../../../ui/empty_state.tsx';
import { Menu, type MenuItem } from '../../../ui/menu.tsx';
import { Skeleton } from '../../../ui/skeleton.tsx';
import type { Prompt } from '../prompt_api.ts';
import styles from '../prompts.module.css';
import { COLUMNS_MAX } from '../prompts_url.ts';
import { ReplayOnTrace } from '../replay_on_trace.tsx';
import { SavePrompt } from '../save_prompt.tsx';
import { textOf, valueOf } from '../template.ts';
import { AddItems } from './add_items.tsx';
import { ColumnHead } from './column_head.tsx';
import { InputRow } from './input_row.tsx';
import { INPUTS_MAX } from './state.ts';
import { useCosts } from './use_costs.ts';
import type { Playground as State, ShownColumn } from './use_playground.ts';

type Layer = { kind: 'save'; column: ShownColumn } | { kind: 'items' } | { kind: 'replay'; trace_id: string } | null;

interface PlaygroundProps {
  prompt: Prompt;
  playground: State;
  /** Called with the version that was saved from a draft. */
  onSaved: (version: string) => void;
}

/** The panel. */
export function Playground({ prompt, playground, onSaved }: PlaygroundProps): ReactElement {
  const { org_id } = useOrganization();
  const about = useQuery(apiQuery(null, '/v1/about', {}));
  const [layer, setLayer] = useState<Layer>(null);
  const [showsDiff, setShowsDiff] = useState(false);
  const { columns, inputs, runs } = playground;
  const costOf = useCosts(
    org_id,
    [...runs.all.values()].flatMap(({ trace_id }) => trace_id ?? []),
  );
  const close = (): void => {
    setLayer(null);
  };
  if (about.data?.data.models === false) return <NoUpstream />;
  if (inputs.isPending) return <Skeleton rows={10} height={20} />;
  return (
    <section className={styles.section} style={{ '--columns': columns.length } as CSSProperties}>
      <Tools
        playground={playground}
        showsDiff={showsDiff}
        onDiff={() => {
          setShowsDiff(!showsDiff);
        }}
        onItems={() => {
          setLayer({ kind: 'items' });
        }}
      />
      <Columns
        prompt={prompt}
        playground={playground}
        onSave={(column) => {
          setLayer({ kind: 'save', column });
        }}
      />
      {inputs.inputs.map((input, index) => (
        <InputRow
          key={input.id}
          playground={playground}
          input={input}
          number={index + 1}
          costOf={costOf}
          showsDiff={showsDiff}
          onReplay={(trace_id) => {
            setLayer({ kind: 'replay', trace_id });
          }}
        />
      ))}
      {layer?.kind === 'save' && (
        <SavePrompt
          name={prompt.name}
          draft={{ template: layer.column.template, model: layer.column.model }}
          onClose={close}
          onSaved={onSaved}
        />
      )}
      {layer?.kind === 'items' && (
        <AddItems room={INPUTS_MAX - inputs.inputs.length} onClose={close} onAdd={inputs.add} />
      )}
      {layer?.kind === 'replay' && <ReplayOnTrace traceId={layer.trace_id} onClose={close} />}
    </section>
  );
}

interface ColumnsProps {
  prompt: Prompt;
  playground: State;
  onSave: (column: ShownColumn) => void;
}

function Columns({ prompt, playground, onSave }: ColumnsProps): ReactElement {
  const { columns, inputs, names } = playground;
  const known = names.filter((name) => inputs.inputs.some(({ values }) => valueOf(name, values) !== undefined));
  const models = [...new Set([...prompt.versions, ...inputs.calls].flatMap(({ model }) => model ?? []))];
  return (
    <div className={styles.columns}>
      {columns.map((column) => (
        <ColumnHead
          key={column.id}
          column={column}
          versions={prompt.versions}
          models={models}
          known={known}
          onChange={(patch, replace) => {
            const changed = columns.map((one) => (one.id === column.id ? { ...one, ...patch } : one));
            playground.setColumns(changed, replace);
          }}
          onEdit={(template) => {
            playground.edit(column.id, template);
          }}
          onSave={() => {
            onSave(column);
          }}
          onRemove={
            columns.length === 1
              ? null
              : () => {
                  playground.setColumns(columns.filter(({ id }) => id !== column.id));
                }
          }
        />
      ))}
    </div>
  );
}

function NoUpstream(): ReactElement {
  return (
    <EmptyState title="No model provider is configured">
      The playground calls models through the gateway. Set <code>SERVICE_LLM_BASE_URL</code> (and{' '}
      <code>SERVICE_LLM_API_KEY</code>, where the provider needs one), then start the service again.
    </EmptyState>
  );
}

interface ToolsProps {
  playground: State;
  showsDiff: boolean;
  onDiff: () => void;
  onItems: () => void;
}

function Tools({ playground, showsDiff, onDiff, onItems }: ToolsProps): ReactElement {
  const { columns, inputs, runs, problem } = playground;
  const { can } = useOrganization();
  const { isRunning } = runs;
  const calls = columns.length * inputs.inputs.length;
  const toggle = (): void => {
    if (isRunning) runs.stop();
    else playground.run();
  };
  const addColumn = (): void => {
    const last = columns.at(-1);
    if (last !== undefined && columns.length < COLUMNS_MAX) playground.setColumns([...columns, last]);
  };
  const canDiff = columns.length > 1;
  useKeys('Playground', [
    { keys: 'r', label: isRunning ? 'Stop the runs' : 'Run the playground', run: toggle },
    {
      keys: 'd',
      label: 'Show how the answers differ',
      run: () => {
        if (canDiff) onDiff();
      },
    },
  ]);
  const full = inputs.inputs.length >= INPUTS_MAX;
  const items: MenuItem[] = [
    {
      label: 'By hand',
      onSelect: () => {
        inputs.add([{ source: { kind: 'hand' }, values: {} }]);
      },
    },
    ...(can('datasets:read') ? [{ label: 'From a dataset', onSelect: onItems }] : []),
    ...realCalls(playground),
  ];
  return (
    <div className={styles.line}>
      <Button look="primary" keys="r" disabled={!isRunning && problem !== null} onClick={toggle}>
        {isRunning ? 'Stop' : `Run ${calls} ${calls === 1 ? 'call' : 'calls'}`}
      </Button>
      {canDiff && (
        <Button keys="d" aria-pressed={showsDiff} onClick={onDiff}>
          Show differences
        </Button>
      )}
      {columns.length < COLUMNS_MAX && (
        <Button icon="plus" onClick={addColumn}>
          Add column
        </Button>
      )}
      {!full && (
        <Menu label="Add input" items={items}>
          Add input
        </Menu>
      )}
      <span className={styles.quiet} role="status">
        {isRunning ? 'Running' : (problem ?? '')}
      </span>
    </div>
  );
}

/** Real calls that are no input yet. */
function realCalls({ inputs }: State): MenuItem[] {
  const used = new Set(inputs.inputs.map(({ source }) => (source.kind === 'call' ? source.span_id : '')));
  return inputs.calls
    .filter(({ variables, span_id }) => variables !== null && !used.has(span_id))
    .slice(0, INPUTS_MAX)
    .map(({ trace_id, span_id, started_at, variables }, index) => ({
      label: `Real call ${index + 1}: ${Object.values(variables ?? {})
        .map(textOf)
        .join(', ')
        .slice(0, 48)}`,
      aside: span_id.slice(-6),
      apart: index === 0,
      onSelect: () => {
        inputs.add([{ source: { kind: 'call', trace_id, span_id, started_at }, values: variables ?? {} }]);
      },
    }));
}
