// The editor for a new monitor. The address names the fields to begin with, as a chart gives them.
import { type ReactElement, useState } from 'react';
import { usePageRequest } from '../../shell/page_request.ts';
import { codec, list } from '../../url/search_params.ts';
import { useSearchState } from '../../url/use_search_state.ts';
import { draftFrom } from './draft.ts';
import { LEFT_OUT } from './new_monitor_href.ts';
import { EditorForm } from './editor_form.tsx';

const CODEC = codec({ [LEFT_OUT]: list() });

/** The page. */
export default function NewMonitorScreen(): ReactElement {
  const [initial] = useState(() => draftFrom(location.search));
  usePageRequest('/v1/analytics/schema');
  const [{ left_out }] = useSearchState(CODEC);
  return <EditorForm monitor={null} initial={initial} leftOut={left_out} />;
}
