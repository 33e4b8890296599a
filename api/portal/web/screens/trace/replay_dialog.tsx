// The dialog that replays a trace with the current prompts: first without a model call, to see what
// would be sent, then with the calls, which cost and are stored as a new trace.
import { useMutation, useQuery } from '@tanstack/react-query';
import { type ReactElement, useState } from 'react';
import { navigate } from 'wouter/use-browser-location';
import { send } from '../../client/api.ts';
import { randomId } from '../../client/random_id.ts';
import { useOrganization } from '../../client/session.ts';
import { Button } from '../../ui/button.tsx';
import { Dialog } from '../../ui/dialog.tsx';
import { ErrorPanel } from '../../ui/error_panel.tsx';
import { Skeleton } from '../../ui/skeleton.tsx';
import { Name } from '../../trace/name.tsx';
import styles from './span_panel.module.css';

const PATH = '/v1/traces/{trace_id}/replay';

type Success = Awaited<ReturnType<typeof send<'post', typeof PATH>>>['data'];

export function ReplayDialog({ traceId, onClose }: { traceId: string; onClose: () => void }): ReactElement {
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
    onSuccess: ({ data }) => {
      onClose();
      if (data.new_trace_id !== null) navigate(`/o/${org_id}/traces/${encodeURIComponent(data.new_trace_id)}`);
    },
  });
  const spans = dry.data?.data.spans;
  const error = commit.error ?? dry.error;
  return (
    <Dialog
      title="Replay trace"
      form="wide"
      onClose={onClose}
      footer={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button
            look="primary"
            busy={commit.isPending}
            disabled={spans === undefined || spans.length === 0}
            onClick={() => {
              commit.mutate();
            }}
          >
            {spans === undefined
              ? 'Replay trace'
              : `Replay ${spans.length} model ${spans.length === 1 ? 'call' : 'calls'}`}
          </Button>
        </>
      }
    >
      {error !== null ? (
        <ErrorPanel error={error} what="the replay" />
      ) : spans === undefined ? (
        <Skeleton rows={4} />
      ) : (
        <Calls spans={spans} />
      )}
    </Dialog>
  );
}

type Call = Success['spans'][number];

function Calls({ spans }: { spans: readonly Call[] }): ReactElement {
  return (
    <>
      <p>
        Each model call is made again with the current version of its prompt, and with its original input where it names
        none. The calls cost as usual, and their answers are stored as a new trace.
      </p>
      <table className={styles.pairs}>
        <tbody>
          {spans.map(({ span_id, model, prompt_name, prompt_version, old_prompt, new_prompt }) => (
            <tr key={span_id}>
              <th scope="row">
                <Name>{model}</Name>
              </th>
              <td>
                {prompt_name === null ? (
                  'original input'
                ) : (
                  <Name>{`prompt ${prompt_name} ${prompt_version ?? ''}`}</Name>
                )}
                {old_prompt === new_prompt ? ', unchanged' : ', changed'}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </>
  );
}
