// The dialog that replays a trace with the current prompts: first without a model call, to see what
// would be sent and what the calls cost before, then with the calls, which are stored as a new trace.
// Its end is a link to the comparison of both traces.
import { useMutation, useQuery } from '@tanstack/react-query';
import { type ReactElement, useState } from 'react';
import { navigate } from 'wouter/use-browser-location';
import { apiQuery, send } from '../../client/api.ts';
import { randomId } from '../../client/random_id.ts';
import { useOrganization } from '../../client/session.ts';
import { money } from '../../text/format.ts';
import { Button } from '../../ui/button.tsx';
import { Dialog } from '../../ui/dialog.tsx';
import { ErrorPanel } from '../../ui/error_panel.tsx';
import { Skeleton } from '../../ui/skeleton.tsx';
import { useTrace } from '../../trace/store.ts';
import { comparePath } from '../compare/candidates.ts';
import { type Replay, ReplayCalls } from './replay_calls.tsx';
import styles from './span_panel.module.css';

const PATH = '/v1/traces/{trace_id}/replay';
/** A stored replay can be read a moment later; the dialog asks until then. */
const ASK_AGAIN_MS = 500;

/** The dialog. */
export default function ReplayDialog({ traceId, onClose }: { traceId: string; onClose: () => void }): ReactElement {
  const { org_id, can } = useOrganization();
  const { commit, replay, newId, isStored, error } = useReplay(traceId);
  const calls = replay?.spans.length ?? 0;
  const callWords = `${calls} model ${calls === 1 ? 'call' : 'calls'}`;
  const compare = (): void => {
    onClose();
    if (newId !== null) navigate(comparePath(org_id, traceId, newId));
  };
  return (
    <Dialog
      title="Replay trace"
      form="wide"
      onClose={onClose}
      footer={
        <>
          <Button onClick={onClose}>{newId === null ? 'Cancel' : 'Close'}</Button>
          {newId !== null ? (
            <Button look="primary" icon="compare" disabled={!isStored} onClick={compare}>
              Compare with the replay
            </Button>
          ) : (
            can('gateway:invoke') && (
              <Button
                look="primary"
                busy={commit.isPending}
                disabled={calls === 0}
                onClick={() => {
                  commit.mutate();
                }}
              >
                {calls === 0 ? 'Replay trace' : `Replay ${callWords}`}
              </Button>
            )
          )}
        </>
      }
    >
      <p role="status" className={styles.group}>
        {commit.isPending
          ? `Calling the models, ${callWords}.`
          : newId === null
            ? ''
            : isStored
              ? 'The answers are stored as a new trace.'
              : 'The models have answered. The new trace is being stored.'}
      </p>
      {error !== null ? (
        <ErrorPanel error={error} what="the replay" />
      ) : replay === undefined ? (
        <Skeleton rows={4} />
      ) : (
        <>
          {newId === null && <Plan replay={replay} mayCommit={can('gateway:invoke')} />}
          <ReplayCalls spans={replay.spans} />
        </>
      )}
    </Dialog>
  );
}

/** Sends the replay without model calls at once, and returns the mutation that sends it with them. */
function useReplay(traceId: string) {
  const { org_id } = useOrganization();
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
    mutationFn: () => send(org_id, 'post', PATH, { params, body: { commit: true }, idempotencyKey: keys.commit }),
  });
  const replay = commit.data?.data ?? dry.data?.data;
  const newId = commit.data?.data.new_trace_id ?? null;
  const isStored = useIsStored(newId);
  return { commit, replay, newId, isStored, error: commit.error ?? dry.error };
}

/** Returns true once the new trace can be read. */
function useIsStored(trace_id: string | null): boolean {
  const { org_id } = useOrganization();
  const query = useQuery({
    ...apiQuery(org_id, '/v1/traces', { query: { trace_ids: [trace_id ?? ''], limit: 1 } }),
    enabled: trace_id !== null,
    refetchInterval: ({ state }) => (state.data?.data.length === 0 ? ASK_AGAIN_MS : false),
  });
  return query.data?.data.length === 1;
}

/** Says what a replay does and what its calls cost when they were made. */
function Plan({ replay: { spans }, mayCommit }: { replay: Replay; mayCommit: boolean }): ReactElement {
  const { tree } = useTrace((snapshot) => snapshot.model);
  const cost = spans.reduce((sum, { span_id }) => sum + (tree.cost[tree.indexOf.get(span_id) ?? -1] ?? 0), 0);
  if (spans.length === 0) return <p>The trace has no model call that could be made again.</p>;
  return (
    <p>
      Each model call is made again with the current version of its prompt, and with its original input where it names
      none. When they were made, these calls cost {money(cost)}.{' '}
      {mayCommit
        ? 'Nothing was sent yet.'
        : 'This is a preview: calling the models needs the permission gateway:invoke.'}
    </p>
  );
}
