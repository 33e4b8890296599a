// Makes a prompt from a real call: the newest traces with a model call, and the messages of the one
// that the person chooses.
import { useQuery } from '@tanstack/react-query';
import { type ReactElement, useState } from 'react';
import { apiQuery, get } from '../../client/api.ts';
import { errorTitle } from '../../text/errors.ts';
import { RequestError } from '../../client/error.ts';
import { useOrganization } from '../../client/session.ts';
import { nameOf } from '../../lists/trace_data.ts';
import { money } from '../../text/format.ts';
import { readMessages } from '../../trace/text/messages.ts';
import { Button } from '../../ui/button.tsx';
import { Dialog } from '../../ui/dialog.tsx';
import { EmptyState } from '../../ui/empty_state.tsx';
import { ErrorPanel } from '../../ui/error_panel.tsx';
import { Moment } from '../../ui/moment.tsx';
import { Skeleton } from '../../ui/skeleton.tsx';
import styles from './prompts.module.css';
import type { PromptDraft } from './save_prompt.tsx';
import type { Template } from './template.ts';

const TRACES_SHOWN = 20;

/** Returns a stored prompt as a template. */
export function templateOf(prompt: string): Template {
  const messages = readMessages(prompt);
  return messages === null ? prompt : messages.map(({ role, text }) => ({ role, content: text }));
}

/** Reads the first model call of a trace. */
async function readCall(org_id: string, trace_id: string): Promise<PromptDraft> {
  const outline = await get(org_id, '/v1/traces/{trace_id}/outline', { path: { trace_id } });
  const { spans } = outline.data;
  const at = spans.kind.indexOf('llm');
  const span_id = spans.span_id[at];
  if (span_id == null) throw new Error('The trace has no model call.');
  const { data } = await get(org_id, '/v1/traces/{trace_id}/spans/{span_id}', { path: { trace_id, span_id } });
  if (data.prompt === undefined || data.prompt === '') throw new Error('No text of this call is stored.');
  return { template: templateOf(data.prompt), model: data.model };
}

/** The dialog that chooses a call. */
export function FirstPrompt({
  onClose,
  onChosen,
}: {
  onClose: () => void;
  onChosen: (draft: PromptDraft) => void;
}): ReactElement {
  const { org_id } = useOrganization();
  const [failed, setFailed] = useState<string | null>(null);
  const traces = useQuery(apiQuery(org_id, '/v1/traces', { query: { limit: TRACES_SHOWN, min_tokens: '1' } }));
  const choose = (trace_id: string): void => {
    readCall(org_id, trace_id).then(onChosen, (error: unknown) => {
      if (error instanceof RequestError) setFailed(errorTitle(error, 'the call'));
      else setFailed(error instanceof Error ? error.message : 'The call cannot be read.');
    });
  };
  return (
    <Dialog title="Prompt from a real call" form="wide" onClose={onClose}>
      <div className={styles.section}>
        <p>Choose a trace. The messages of its first model call become the template.</p>
        {failed !== null && (
          <p role="alert" className={styles.failed}>
            {failed}
          </p>
        )}
        {traces.error !== null && traces.data === undefined && <ErrorPanel error={traces.error} what="the traces" />}
        {traces.isPending && <Skeleton rows={6} height={20} />}
        {traces.data?.data.length === 0 && (
          <EmptyState title="No model calls yet">Send a trace with a model call first.</EmptyState>
        )}
        {traces.data?.data.map((trace) => (
          <div key={trace.trace_id} className={styles.line}>
            <Button
              onClick={() => {
                choose(trace.trace_id);
              }}
            >
              {nameOf(trace)}
            </Button>
            <span className={styles.quiet}>
              {trace.agent_id} <Moment at={trace.started_at} form="ago" /> {money(trace.cost_usd)}
            </span>
          </div>
        ))}
      </div>
    </Dialog>
  );
}
