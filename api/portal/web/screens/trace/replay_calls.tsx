// The model calls of a replay, one below the other: what is sent now against what was sent then, and
// the new answer against the old one.
import { type ReactElement, useState } from 'react';
import type { send } from '../../client/api.ts';
import { DiffView } from '../../diff/diff_view.tsx';
import { Name } from '../../trace/name.tsx';
import styles from './span_panel.module.css';

export type Replay = Awaited<ReturnType<typeof send<'post', '/v1/traces/{trace_id}/replay'>>>['data'];
type Call = Replay['spans'][number];

/** Comparisons that are open at first; the others open by a click. */
const OPEN_MAX = 3;

export function ReplayCalls({ spans }: { spans: readonly Call[] }): ReactElement {
  return (
    <>
      {spans.map((call, index) => (
        <OneCall key={call.span_id} call={call} opens={index < OPEN_MAX} />
      ))}
    </>
  );
}

/** A call; its texts are compared while it is open. */
function OneCall({ call, opens }: { call: Call; opens: boolean }): ReactElement {
  const [isOpen, setOpen] = useState(opens);
  const { old_prompt, new_prompt, old_response, new_response } = call;
  return (
    <details
      open={isOpen}
      className={styles.section}
      onToggle={(event) => {
        setOpen(event.currentTarget.open);
      }}
    >
      <summary>
        <Name>{call.model}</Name>, {promptWords(call)}
      </summary>
      {isOpen && old_prompt !== new_prompt && (
        <DiffView title="Prompt" left={old_prompt} right={new_prompt} sides={['Then', 'Now']} />
      )}
      {isOpen && new_response !== null && (
        <DiffView title="Answer" left={old_response} right={new_response} sides={['Then', 'Now']} />
      )}
    </details>
  );
}

function promptWords({ prompt_name, prompt_version, old_prompt, new_prompt }: Call): ReactElement {
  return (
    <>
      {prompt_name === null ? 'original input' : <Name>{`prompt ${prompt_name} ${prompt_version ?? ''}`}</Name>}
      {old_prompt === new_prompt ? ', unchanged' : ', changed'}
    </>
  );
}
