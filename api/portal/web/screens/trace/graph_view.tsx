// The graph of steps: which step follows which, how often, and where it failed. The table behind it
// says the same. Selecting a step goes through its spans.
import { type ReactElement, useEffect, useMemo, useState } from 'react';
import { count, duration } from '../../text/format.ts';
import { useKeys } from '../../shell/keys.ts';
import { Button } from '../../ui/button.tsx';
import { EmptyState } from '../../ui/empty_state.tsx';
import { KindMark } from '../../ui/marks.tsx';
import { Skeleton } from '../../ui/skeleton.tsx';
import { Tooltip } from '../../ui/tooltip.tsx';
import { fitSheet } from '../../trace/graph/fit.ts';
import { layOut } from '../../trace/graph/layout.ts';
import type { Layout } from '../../trace/graph/shape.ts';
import { Name, shownName } from '../../trace/name.tsx';
import { SHOWN_KINDS } from '../../trace/model/outline.ts';
import { type StepEdge, type StepNode, STEPS_MAX, type Steps, stepsOf } from '../../trace/model/steps.ts';
import { useTrace, useTraceStore } from '../../trace/store.ts';
import styles from './graph_view.module.css';

const NODE = { width: 208, height: 48 };

/** Lays the graph out in the worker; null until it has answered. */
function useLayout(nodes: Steps['nodes'], edges: Steps['edges'], isWanted: boolean): Layout | Error | null {
  const [layout, setLayout] = useState<Layout | Error | null>(null);
  useEffect(() => {
    if (!isWanted) return undefined;
    const ending = new AbortController();
    layOut({ nodes: nodes.map(() => NODE), edges }, ending.signal).then(setLayout, (error: unknown) => {
      if (!ending.signal.aborted) setLayout(error instanceof Error ? error : new Error(String(error)));
    });
    return () => {
      ending.abort();
    };
  }, [nodes, edges, isWanted]);
  return layout;
}

/** Returns the span after the selected one among those of a step; its first after the last. */
const nextSpan = (spans: readonly number[], selected: number): number =>
  spans[spans.indexOf(selected) + 1] ?? spans[0] ?? -1;

export default function GraphView(): ReactElement {
  const store = useTraceStore();
  const { tree } = useTrace((snapshot) => snapshot.model);
  const selected = useTrace((snapshot) => snapshot.focusRow);
  const steps = useMemo(() => stepsOf(tree), [tree]);
  const isDrawn = steps.nodes.length <= STEPS_MAX;
  const [isTable, setTable] = useState(!isDrawn);
  // A step that follows itself says so in its own box.
  const drawn = useMemo(
    (): Steps => ({ nodes: steps.nodes, edges: steps.edges.filter(({ from, to }) => from !== to) }),
    [steps],
  );
  const layout = useLayout(drawn.nodes, drawn.edges, isDrawn);
  useKeys('Graph', [
    {
      keys: 'T',
      label: 'Show the graph as a table',
      run: () => {
        setTable(!isTable);
      },
    },
  ]);
  const go = ({ spans }: StepNode): void => {
    store.reveal(nextSpan(spans, selected));
  };
  if (steps.nodes.length === 0) return <EmptyState title="This trace has no steps yet" />;
  return (
    <div className={styles.view}>
      <div className={styles.bar}>
        <span className={styles.quiet}>
          {isDrawn
            ? 'Select a step to go through its spans.'
            : `More than ${STEPS_MAX} different steps are shown as a table.`}
        </span>
        {isDrawn && (
          <Button
            look="quiet"
            keys="T"
            aria-pressed={isTable}
            onClick={() => {
              setTable(!isTable);
            }}
          >
            Show as table
          </Button>
        )}
      </div>
      {isTable ? (
        <StepTable steps={steps} onGo={go} />
      ) : layout === null ? (
        <Skeleton rows={6} height={32} />
      ) : layout instanceof Error ? (
        <EmptyState title="The graph cannot be drawn">{layout.message}. The table shows the same steps.</EmptyState>
      ) : (
        <Drawing steps={drawn} layout={layout} selected={selected} onGo={go} />
      )}
    </div>
  );
}

/** How often one step follows another; nothing where it does once. */
const labelOf = ({ count: times }: StepEdge): string => (times > 1 ? `×${count(times)}` : '');

interface DrawingProps {
  steps: Steps;
  layout: Layout;
  selected: number;
  onGo: (node: StepNode) => void;
}

function Drawing({ steps, layout, selected, onGo }: DrawingProps): ReactElement {
  const most = steps.edges.reduce((max, { count }) => Math.max(max, count), 1);
  const sheet = useMemo(() => fitSheet(layout, NODE, steps.edges.map(labelOf)), [layout, steps]);
  return (
    <div className={styles.scroll}>
      <div className={styles.sheet} style={{ width: sheet.width, height: sheet.height }}>
        <svg width={sheet.width} height={sheet.height} className={styles.edges} aria-hidden="true">
          <defs>
            <marker
              id="step-arrow"
              viewBox="0 0 8 8"
              refX="8"
              refY="4"
              markerWidth="7"
              markerHeight="7"
              markerUnits="userSpaceOnUse"
              orient="auto"
            >
              <path d="M0 0 8 4 0 8Z" />
            </marker>
          </defs>
          {steps.edges.map((edge, at) => {
            const label = sheet.labels[at] ?? null;
            return (
              <g key={`${edge.from} ${edge.to}`}>
                <polyline
                  points={(sheet.edges[at] ?? []).map(({ x, y }) => `${x},${y}`).join(' ')}
                  strokeWidth={1 + (2 * edge.count) / most}
                  markerEnd="url(#step-arrow)"
                />
                {label !== null && (
                  <text x={label.x} y={label.y}>
                    {labelOf(edge)}
                  </text>
                )}
              </g>
            );
          })}
        </svg>
        {steps.nodes.map((node, at) => (
          <StepButton
            key={`${node.kind} ${node.name}`}
            node={node}
            place={sheet.nodes[at] ?? { x: 0, y: 0 }}
            isSelected={node.spans.includes(selected)}
            onGo={onGo}
          />
        ))}
      </div>
    </div>
  );
}

interface StepButtonProps {
  node: StepNode;
  place: { x: number; y: number };
  isSelected: boolean;
  onGo: (node: StepNode) => void;
}

function StepButton({ node, place, isSelected, onGo }: StepButtonProps): ReactElement {
  const { tree } = useTrace((snapshot) => snapshot.model);
  return (
    <Tooltip text={<Name>{shownName(tree.names[node.name] ?? '')}</Name>}>
      {() => (
        <button
          type="button"
          className={styles.node}
          aria-pressed={isSelected}
          data-failed={node.failed > 0}
          style={{
            left: place.x - NODE.width / 2,
            top: place.y - NODE.height / 2,
            width: NODE.width,
            height: NODE.height,
          }}
          onClick={() => {
            onGo(node);
          }}
        >
          <StepName node={node} />
          <span className={styles.quiet}>
            {duration(node.busy)}
            {node.failed > 0 && <span className={styles.failed}> · {node.failed} failed</span>}
          </span>
        </button>
      )}
    </Tooltip>
  );
}

function StepName({ node }: { node: StepNode }): ReactElement {
  const { tree } = useTrace((snapshot) => snapshot.model);
  const name = shownName(tree.names[node.name] ?? '');
  return (
    <span className={styles.name}>
      <KindMark kind={SHOWN_KINDS[node.kind] ?? 'event'} />
      <span className={styles.nameText}>
        <Name>{name}</Name>
      </span>
      {node.spans.length > 1 && <span className={styles.quiet}>×{node.spans.length}</span>}
    </span>
  );
}

function StepTable({ steps, onGo }: { steps: Steps; onGo: (node: StepNode) => void }): ReactElement {
  const { tree } = useTrace((snapshot) => snapshot.model);
  const followers = new Map<number, string[]>();
  for (const edge of steps.edges) {
    const name = shownName(tree.names[steps.nodes[edge.to]?.name ?? -1] ?? '');
    followers.set(edge.from, [...(followers.get(edge.from) ?? []), `${name} ${labelOf(edge)}`.trimEnd()]);
  }
  return (
    <div className={styles.scroll}>
      <table className={styles.table}>
        <thead>
          <tr>
            <th scope="col">Step</th>
            <th scope="col">Spans</th>
            <th scope="col">Time</th>
            <th scope="col">Failed</th>
            <th scope="col">Followed by</th>
          </tr>
        </thead>
        <tbody>
          {steps.nodes.map((node, at) => (
            <tr key={`${node.kind} ${node.name}`}>
              <th scope="row">
                <button
                  type="button"
                  className={styles.link}
                  onClick={() => {
                    onGo(node);
                  }}
                >
                  <StepName node={{ ...node, spans: node.spans.slice(0, 1) }} />
                </button>
              </th>
              <td>{node.spans.length}</td>
              <td>{duration(node.busy)}</td>
              <td>{node.failed === 0 ? '' : node.failed}</td>
              <td>
                <Name>{(followers.get(at) ?? []).join(', ')}</Name>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
