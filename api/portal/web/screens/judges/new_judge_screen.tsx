// The editor for a new judge. `?from=` names the rule to begin with.
import type { ReactElement } from 'react';
import { usePageRequest } from '../../shell/page_request.ts';
import { codec, text } from '../../url/search_params.ts';
import { useSearchState } from '../../url/use_search_state.ts';
import { EditorForm } from './editor_form.tsx';
import { startingDraft } from './starters.ts';

const CODEC = codec({ from: text() });

/** The page. */
export default function NewJudgeScreen(): ReactElement {
  const [{ from }] = useSearchState(CODEC);
  usePageRequest('/v1/judges');
  return <EditorForm key={from} judge={null} initial={startingDraft(from)} />;
}
