// The row above the view: which view, find, and how the axis is shown.
import type { ReactElement, RefObject } from 'react';
import { Button } from '../../ui/button.tsx';
import { Tabs } from '../../ui/tabs.tsx';
import { isWhole, wholeView, zoomAt } from '../../trace/model/axis.ts';
import { FindField } from '../../trace/text/find_field.tsx';
import { useTrace, useTraceStore } from '../../trace/store.ts';
import { togglePanelSide, usePanelSide } from './panel_side.ts';
import type { ViewName } from './trace_url.ts';
import { useNarrow } from '../../lists/use_narrow.ts';
import type { TraceFind } from './use_trace_find.ts';
import styles from './trace_screen.module.css';

const VIEW_TABS = [
  { id: 'waterfall', label: 'Waterfall', keys: '1' },
  { id: 'graph', label: 'Graph', keys: '2' },
  { id: 'conversation', label: 'Conversation', keys: '3' },
  { id: 'json', label: 'JSON', keys: '4' },
];

interface TraceToolsProps {
  view: ViewName;
  onView: (view: ViewName) => void;
  find: TraceFind;
  findField: RefObject<HTMLInputElement | null>;
}

export function TraceTools({ view, onView, find, findField }: TraceToolsProps): ReactElement {
  const side = usePanelSide();
  const isNarrow = useNarrow();
  return (
    <div className={styles.bar}>
      <Tabs
        label="Views of the trace"
        tabs={VIEW_TABS}
        selected={view}
        onSelect={(id) => {
          onView(id as ViewName);
        }}
      />
      <div className={styles.tools}>
        {view === 'waterfall' && <AxisTools />}
        <div className={styles.find} title={find.problem ?? undefined}>
          <FindField
            placeholder="Find names, errors, texts  /"
            label="Find names, models, ids, errors and texts in this trace"
            text={find.text}
            total={find.total}
            isSearching={find.isSearching}
            at={find.at}
            inputRef={findField}
            onChange={find.onChange}
            onStep={find.onStep}
          />
        </div>
        {!isNarrow && (
          <Button
            look="quiet"
            icon={side === 'side' ? 'bottom' : 'side'}
            hint={side === 'side' ? 'Put the span panel below' : 'Put the span panel at the side'}
            keys="o"
            onClick={togglePanelSide}
          />
        )}
      </div>
    </div>
  );
}

function AxisTools(): ReactElement {
  const store = useTraceStore();
  const axis = useTrace((snapshot) => snapshot.axis);
  const view = useTrace((snapshot) => snapshot.view);
  const hasGaps = useTrace((snapshot) => snapshot.model.gaps.from.length > 0);
  const foldsIdle = useTrace((snapshot) => snapshot.foldsIdle);
  const showsPath = useTrace((snapshot) => snapshot.showsPath);
  const zoom = (factor: number) => () => {
    store.setView(zoomAt(axis, view, factor, 0.5));
  };
  return (
    <>
      {hasGaps && (
        <Button
          look="quiet"
          aria-pressed={foldsIdle}
          hint="Draw stretches without a running span as short breaks"
          onClick={() => {
            store.setFoldsIdle(!foldsIdle);
          }}
        >
          Fold idle time
        </Button>
      )}
      <Button
        look="quiet"
        aria-pressed={showsPath}
        keys="p"
        hint="Underline the spans that the end of the trace waited for"
        onClick={() => {
          store.togglePath();
        }}
      >
        Critical path
      </Button>
      <Button look="quiet" icon="minus" hint="Zoom out" keys="-" disabled={isWhole(axis, view)} onClick={zoom(0.5)} />
      <Button look="quiet" icon="plus" hint="Zoom in" keys="+" onClick={zoom(2)} />
      {!isWhole(axis, view) && (
        <Button
          look="quiet"
          icon="zoom"
          hint="Show the whole trace"
          keys="0"
          onClick={() => {
            store.setView(wholeView(axis));
          }}
        />
      )}
    </>
  );
}
