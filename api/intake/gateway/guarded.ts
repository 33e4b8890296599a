// The guards around a call: applies them to its prompt and records a call that they block before it is
// made. The response is guarded in invoke.ts.
import type { JudgeRecord } from '../../../schemas/records/judge.ts';
import { type GatewayCall, readCall } from './call.ts';
import { applyGuards, blockedBy, type GuardNote, guardsOf } from './guards.ts';
import type { Invocation, InvokeDeps } from './invoke.ts';
import { recordOf } from './record.ts';
import { usageRecordOf } from './usage_record.ts';

/** Returns a call with its prompt as the guards leave it, and the guard that blocks it. */
export function guardPrompt(
  judges: readonly JudgeRecord[],
  call: GatewayCall,
): { call: GatewayCall; notes: readonly GuardNote[]; blocked: GuardNote | null } {
  const guards = guardsOf(judges, 'prompt', call);
  if (guards.length === 0) return { call, notes: [], blocked: null };
  const sent = call.raw.toString('utf8');
  const { text, notes, blocked } = applyGuards(guards, 'prompt', sent, true);
  const guarded = text === sent ? call : readCall(call.operation, call.labels, Buffer.from(text, 'utf8'));
  return { call: guarded, notes, blocked };
}

/**
 * Records a call whose prompt is blocked. No model is asked.
 * @throws ApiError forbidden, naming the judge
 */
export function refuseBlocked(
  { org_id, call, capture, notes, answering }: Invocation,
  blocked: GuardNote,
  deps: Pick<InvokeDeps, 'recorder' | 'countUse' | 'partitions' | 'now' | 'observeCall'>,
): never {
  const error = blockedBy(blocked);
  const at = deps.now();
  const event = (capture === 'usage' ? usageRecordOf : recordOf)(
    {
      org_id,
      operation: call.operation,
      labels: call.labels,
      request: call.request,
      response: null,
      outcome: 'error',
      started_at: at,
      ended_at: at,
      attributes: {
        http_status: error.status,
        gateway: true,
        request_id: answering.request_id,
        guards: notes,
        error_message: error.detail,
      },
    },
    deps.partitions,
  );
  deps.recorder.add(event, deps.countUse(org_id, event));
  deps.observeCall(call.operation, 'error');
  throw error;
}
