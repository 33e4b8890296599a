// Replays a trace with the newest versions of its prompts: first what would be sent now beside what was
// sent, then the calls, and then the comparison of the two traces.
import { useMutation, useQuery } from '@tanstack/react-query';
import { type ReactElement, useState } from 'react';
import { navigate } from 'wouter/use-browser-location';
import { get, send } from '../../client/api.ts';
import { randomId } from '../../client/random_id.ts';
import { useOrganization } from '../../client/session.ts';
import { DiffView } from '../../diff/diff_view.tsx';
import { Button } from '../../ui/button.tsx';
import { Dialog } from '../../ui/dialog.tsx';
import { ErrorPanel } from '../../ui/error_panel.tsx';
import { Skeleton } from '../../ui/skeleton.tsx';
import styles from './prompts.module.css';

const PATH = '/v1/traces/{trace_id}/replay';
const ASK_MS = 500;
const ASKS_MAX = 40;

/** Resolves once a trace can be read, or after ASKS_MAX questions. */
async function stored(org_id: string, trace_id: string): Promise<void> {
  for (let asks = 0; asks < ASKS_MAX; asks++) {
    const { data } = await get(org_id, '/v1/traces', { query: { trace_ids: [trace_id], limit: 1 } });
    if (data.length > 0) return;
    await new Promise((resolve) => setTimeout(resolve, ASK_MS));
  }
}

/** The open dialog. */
export function ReplayOnTrace({ traceId, onClose }: { traceId: string; onClose: () => void }): ReactElement {
  const { org_id, can } = useOrganization();
  const [keys] = useState(() => ({ dry: randomId(), commit: randomId() }));
  const params = { path: { trace_id: traceId } };
  const dry = useQuery({
    queryKey: [org_id, PATH, traceId, keys.dry],
    queryFn: ({ signal }) =>
      send(org_id, 'post', PATH, { params, body: { commit: false }, idempotencyKey: keys.dry, signal }),
    gcTime: 0,
    retry: false,
  });
  const commit = useMutation({
    mutationFn: async () => {
      const { data } = await send(org_id, 'post', PATH, {
        params,
        body: { commit: true },
        idempotencyKey: keys.commit,
      });
      if (data.new_trace_id !== null) await stored(org_id, data.new_trace_id);
      return data.new_trace_id;
    },
    onSuccess: (new_trace_id) => {
      onClose();
      const path = [traceId, ...(new_trace_id === null ? [] : [new_trace_id])].map(encodeURIComponent).join('/');
      navigate(`/o/${encodeURIComponent(org_id)}/compare/${path}`);
    },
  });
  const spans = dry.data?.data.spans;
  const error = commit.error ?? dry.error;
  return (
    <Dialog
      title="Replay on trace"
      form="wide"
      onClose={onClose}
      footer={
        <>
          <Button onClick={onClose}>Cancel</Button>
          {can('gateway:invoke') && (
            <Button
              look="primary"
              busy={commit.isPending}
              disabled={spans === undefined || spans.length === 0}
              onClick={() => {
                commit.mutate();
              }}
            >
              {spans === undefined
                ? 'Replay and compare'
                : `Replay ${spans.length} ${spans.length === 1 ? 'call' : 'calls'} and compare`}
            </Button>
          )}
        </>
      }
    >
      <div className={styles.section}>
        <p>
          Each model call of the trace is made again with the newest version of its prompt. The calls cost as usual,
          their answers are stored as a new trace, and the two traces are compared.
        </p>
        {error !== null && <ErrorPanel error={error} what="the replay" />}
        {dry.isPending && <Skeleton rows={6} />}
        {spans?.map((span) => (
          <CallDiff key={span.span_id} call={span} />
        ))}
      </div>
    </Dialog>
  );
}

type Call = Awaited<ReturnType<typeof send<'post', typeof PATH>>>['data']['spans'][number];

function CallDiff({
  call: { model, prompt_name, prompt_version, old_prompt, new_prompt },
}: {
  call: Call;
}): ReactElement {
  return (
    <DiffView
      title={`${prompt_name === null ? 'Original input' : `${prompt_name} ${prompt_version ?? ''}`}, ${model}`}
      left={old_prompt}
      right={new_prompt}
      sides={['As it was sent', 'As it would be sent']}
    />
  );
}
