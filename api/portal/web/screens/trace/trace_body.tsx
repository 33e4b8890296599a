// The parts of an open trace, one below the other: head, cause, where it went, the view with its
// tools, and the panel of the selected span beside it.
import { type ReactElement, type RefObject, useRef, useState } from 'react';
import { count } from '../../text/format.ts';
import { useSearchState } from '../../url/use_search_state.ts';
import { SplitPane } from '../../ui/split_pane.tsx';
import { useTrace } from '../../trace/store.ts';
import { CauseLine } from './cause_line.tsx';
import { Conversation } from './conversation.tsx';
import { OutlineJson } from './outline_json.tsx';
import { Minimap } from './minimap.tsx';
import { PanelSheet } from './panel_sheet.tsx';
import { SpanPanel } from './span_panel.tsx';
import { TraceHead } from './trace_head.tsx';
import { TraceTools } from './trace_tools.tsx';
import { type TabName, traceUrl, type ViewName } from './trace_url.ts';
import { useNarrow } from '../../lists/use_narrow.ts';
import { usePanelSide } from './panel_side.ts';
import { useTraceFind } from './use_trace_find.ts';
import { useTraceKeys } from './use_trace_keys.ts';
import { useTraceUrl } from './use_trace_url.ts';
import { Waterfall } from './waterfall.tsx';
import { WhereItWent } from './where_it_went.tsx';
import { cx } from '../../ui/cx.ts';
import { deferred } from '../../ui/deferred.tsx';
import styles from './trace_screen.module.css';

const GraphView = deferred(() => import('./graph_view.tsx'));
const ReplayDialog = deferred(() => import('./replay_dialog.tsx'));
const ScoreDialog = deferred(() => import('./score_dialog.tsx'));

type Layer = 'panel' | 'score' | 'replay' | null;

interface TraceBodyProps {
  meta: { total: number; truncated: boolean };
  isStale: boolean;
}

export function TraceBody({ meta, isStale }: TraceBodyProps): ReactElement {
  const { outline, tree } = useTrace((snapshot) => snapshot.model);
  const traceId = outline.trace.trace_id;
  const [url, change] = useSearchState(traceUrl);
  const [layer, setLayer] = useState<Layer>(null);
  const grid = useRef<HTMLDivElement>(null);
  const findField = useRef<HTMLInputElement>(null);
  const isNarrow = useNarrow();
  const side = usePanelSide();
  const close = (): void => {
    setLayer(null);
  };
  const openPanel = (): void => {
    if (isNarrow) setLayer('panel');
  };
  const setView = (view: ViewName): void => {
    change({ view });
  };
  const setTab = (tab: TabName): void => {
    change({ tab }, { replace: true });
    openPanel();
  };
  useTraceUrl(url, change);
  const find = useTraceFind(traceId, url.find, change);
  const onScore = (): void => {
    setLayer('score');
  };
  const onReplay = (): void => {
    setLayer('replay');
  };
  useTraceKeys({ traceId, grid, findField, setView, setTab, onScore, onReplay });
  const panel = <SpanPanel traceId={traceId} tab={url.tab} onTab={setTab} onScore={onScore} />;
  const view = <View name={url.view} traceId={traceId} grid={grid} onOpen={openPanel} />;
  return (
    <div className={cx(styles.screen, isStale && 'dimmed')} data-stale={isStale}>
      <TraceHead onScore={onScore} onReplay={onReplay} />
      <CauseLine />
      <WhereItWent />
      <TraceTools view={url.view} onView={setView} find={find} findField={findField} />
      {meta.truncated && (
        <p className={styles.note}>
          The first {count(tree.size)} of {count(meta.total)} spans. An export has all of them.
        </p>
      )}
      <div className={styles.content}>
        {isNarrow ? (
          view
        ) : (
          <SplitPane
            key={side}
            name={`trace.${side}`}
            label="Size of the span panel"
            direction={side === 'side' ? 'row' : 'column'}
            share={0.58}
          >
            {[view, panel]}
          </SplitPane>
        )}
      </div>
      {isNarrow && layer === 'panel' && <PanelSheet onClose={close}>{panel}</PanelSheet>}
      {layer === 'score' && <ScoreDialog traceId={traceId} onClose={close} />}
      {layer === 'replay' && <ReplayDialog traceId={traceId} onClose={close} />}
    </div>
  );
}

interface ViewProps {
  name: ViewName;
  traceId: string;
  grid: RefObject<HTMLDivElement | null>;
  onOpen: () => void;
}

function View({ name, traceId, grid, onOpen }: ViewProps): ReactElement {
  switch (name) {
    case 'waterfall':
      return (
        <div className={styles.pane}>
          <div className={styles.minimap}>
            <Minimap />
          </div>
          <div className={styles.view}>
            <Waterfall gridRef={grid} onOpen={onOpen} />
          </div>
        </div>
      );
    case 'graph':
      return <GraphView />;
    case 'conversation':
      return <Conversation traceId={traceId} />;
    case 'json':
      return <OutlineJson />;
  }
}
