// Runs the handler of a mutation between its two audit records: the durable intent before it, and
// its outcome after it. Takes the route's declaration and the request; returns the handler's result
// and whether the request changed anything.
import type { AuditActor } from '../../schemas/records/audit.ts';
import type { AuditNotes, AuditTrail } from './audit.ts';
import type { Credential } from './credential.ts';
import { ApiError } from './errors.ts';
import { answerWithWhatIsThere } from './partial_answers.ts';
import type { AnyContext, Route } from './route.ts';

/** Notes for a route that keeps no record. */
export const NO_NOTES: AuditNotes = {
  target: () => undefined,
  changes: () => undefined,
  org: () => undefined,
  nothing: () => undefined,
};

/**
 * Runs the handler between the durable intent of its mutation and the record of its outcome. A
 * process that dies in between leaves the intent, which is shown as a mutation of unknown outcome.
 */
export async function audited(
  route: Route,
  ctx: AnyContext,
  trail: AuditTrail,
): Promise<{ result: Awaited<ReturnType<Route['handler']>>; changed: boolean }> {
  const { audit } = route;
  if (audit === undefined || audit === null) return { result: await answerWithWhatIsThere(route, ctx), changed: false };
  const params = ctx.params as Record<string, unknown>;
  const final = {
    org_id: audit.operators === true ? '' : ctx.org_id === '' ? (textOf(params['org_id']) ?? '') : ctx.org_id,
    target: { type: audit.target, id: audit.param === undefined ? '' : (textOf(params[audit.param]) ?? '') },
    changes: {} as Record<string, unknown>,
  };
  const happened = { anything: true };
  const entry = await trail.begin({
    org_id: final.org_id,
    actor: actorOf(ctx.credential),
    action: audit.action,
    target: { ...final.target },
    request_id: ctx.request_id,
    ip: ctx.req.socket.remoteAddress ?? '',
  });
  const notes: AuditNotes = {
    target: (id) => {
      final.target.id = id;
    },
    changes: (more) => {
      Object.assign(final.changes, more);
    },
    org: (id) => {
      final.org_id = id;
    },
    nothing: () => {
      happened.anything = false;
    },
  };
  let result;
  try {
    result = await route.handler({ ...ctx, audit: notes });
  } catch (error) {
    // An error with a status of 500 or more does not say whether the mutation happened: it keeps an
    // unknown outcome.
    if (error instanceof ApiError && error.status < 500) await entry.failed();
    throw error;
  }
  // A handler that sets fields notes those that differ: without any, the request changed nothing
  // and leaves no record.
  const changed = happened.anything && (!isSetter(route) || Object.keys(final.changes).length > 0);
  await (changed ? entry.done(final) : entry.failed());
  return { result, changed };
}

const isSetter = ({ method, audit }: Route): boolean => method === 'put' || method === 'patch' || audit?.sets === true;

function actorOf(credential: Credential): AuditActor {
  switch (credential.kind) {
    case 'api_key':
      return { type: 'api_key', id: credential.key_id };
    case 'operator':
      return { type: 'operator', id: 'operator' };
    case 'user':
    case 'person':
      return { type: 'user', id: credential.user_id };
    case 'anonymous':
      return { type: 'system', id: 'anonymous' };
  }
}

const textOf = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined);
