// The whole outline as JSON. A large one goes to the worker as text, so that its find cannot stop the page.
import { type ReactElement, useMemo } from 'react';
import { JsonViewer } from '../../trace/json/json_viewer.tsx';
import { useTrace } from '../../trace/store.ts';

const LOCAL_SPANS_MAX = 1000;

export function OutlineJson(): ReactElement {
  const { outline, tree } = useTrace((snapshot) => snapshot.model);
  const given = useMemo(
    () => (tree.size > LOCAL_SPANS_MAX ? { text: JSON.stringify(outline) } : { value: outline }),
    [outline, tree],
  );
  return <JsonViewer given={given} label="Outline of the trace" fills />;
}
