// Opens the stores of a filled KV in a process of its own, as an API process does at its start, and
// admits requests without HTTP. In: the address of NATS as its argument. Out: one message to its
// parent with all numbers.
import type { IncomingHttpHeaders } from 'node:http';
import { SignJWT } from 'jose';
import { AgentStore } from '../../api/control/agents/store.ts';
import { type AuthDeps, authenticateOrg, permit } from '../../api/http/auth.ts';
import { createTokenVerifier } from '../../api/http/jwt.ts';
import { limitsOfTenant } from '../../api/admission/rate/plans.ts';
import { shareLimits } from '../../api/admission/rate/sharing.ts';
import { TenantLimits } from '../../api/admission/rate/tenant_limits.ts';
import { KeyStore, OrgStore } from '../../api/control/orgs/store.ts';
import { connectNats, trackConnected } from '../../ops/platform/nats/connect.ts';
import { openLog } from '../../ops/platform/nats/open_log.ts';
import { ORGS, orgIdOf, ownerIdOf, rawKeyOf } from './fill_control.ts';

const ROUNDS = 20;
const TOKENS = 2000;
const JWT_SECRET = 'secret-of-the-benchmark-0123456789abcdef';

/** The numbers sent to the parent: microseconds a request unless named otherwise. */
export interface AdmissionNumbers {
  load_ms: number;
  rss_delta_bytes: number;
  heap_delta_bytes: number;
  loaded: { orgs: number };
  key: number[];
  key_limit: number[];
  limit: number[];
  token_first: number[];
  token_again: number[];
}

const onProblem = (problem: string, cause: unknown): void => {
  console.error(problem, cause);
};

async function timed(count: number, one: (index: number) => unknown): Promise<number[]> {
  const times = new Array<number>(count);
  for (let index = 0; index < count; index++) {
    const began = performance.now();
    const result = one(index);
    if (result instanceof Promise) await result;
    times[index] = (performance.now() - began) * 1000;
  }
  return times;
}

async function measure(natsUrl: string): Promise<AdmissionNumbers> {
  const nc = await connectNats({ url: natsUrl, name: 'bench-admission', waitMs: 5000 });
  const log = await openLog(nc, { replicas: 1, logBytesMax: 16 * 1024 ** 3 });
  globalThis.gc?.();
  const before = process.memoryUsage();
  const began = performance.now();
  const [orgs, agents] = await Promise.all([
    OrgStore.open(log, onProblem, () => false),
    AgentStore.open(log, onProblem),
  ]);
  const keys = await KeyStore.open(log, onProblem, {
    memberOf: (org_id, user_id) => orgs.memberOf(org_id, user_id),
    isDeleted: () => false,
    now: () => Date.now(),
  });
  const load_ms = performance.now() - began;
  const after = process.memoryUsage();
  globalThis.gc?.();
  const settled = process.memoryUsage();

  const tokens = createTokenVerifier({ secret: JWT_SECRET, now: Date.now, onProblem });
  const auth: AuthDeps = {
    keys,
    tokens,
    memberships: orgs,
    grants: { allows: () => false },
    adminToken: 'none',
    now: Date.now,
  };
  const limits = new TenantLimits({ limitsOf: limitsOfTenant(orgs), appPerMinute: 5000, now: () => performance.now() });
  const sharing = await shareLimits(limits, { nc, tracked: trackConnected(nc), onProblem });
  const asked = (index: number, headers: IncomingHttpHeaders) => {
    const request = { method: 'GET', headers, pathOrg: orgIdOf(index) };
    const caller = authenticateOrg(request, auth);
    if (!(caller instanceof Promise)) {
      permit('org:read', caller, request, auth);
      return caller;
    }
    return caller.then((person) => {
      permit('org:read', person, request, auth);
      return person;
    });
  };
  const keyHeaders = Array.from({ length: ORGS }, (_, index) => ({
    'x-org-api-key': rawKeyOf(index),
    'x-org-id': orgIdOf(index),
  }));
  const byKey = (index: number) => asked(index % ORGS, keyHeaders[index % ORGS] ?? {});
  const ask = (index: number) => {
    void byKey(index);
    limits.take('api', orgIdOf(index % ORGS), 1);
  };
  await timed(ORGS, ask);
  const key = await timed(ROUNDS * ORGS, byKey);
  const key_limit = await timed(ROUNDS * ORGS, ask);
  const limit = await timed(ROUNDS * ORGS, (index) => limits.take('api', orgIdOf(index % ORGS), 1));

  const exp = Math.floor(Date.now() / 1000) + 3600;
  const secret = new TextEncoder().encode(JWT_SECRET);
  const signed = await Promise.all(
    Array.from({ length: TOKENS }, (_, index) =>
      new SignJWT({ sub: ownerIdOf(index), exp }).setProtectedHeader({ alg: 'HS256', typ: 'JWT' }).sign(secret),
    ),
  );
  const byToken = (index: number) => asked(index % TOKENS, { authorization: `Bearer ${signed[index % TOKENS] ?? ''}` });
  const token_first = await timed(TOKENS, byToken);
  const token_again = await timed(ROUNDS * TOKENS, byToken);

  const numbers: AdmissionNumbers = {
    load_ms,
    rss_delta_bytes: Math.max(after.rss, settled.rss) - before.rss,
    heap_delta_bytes: settled.heapUsed - before.heapUsed,
    loaded: { orgs: orgs.list().length },
    key,
    key_limit,
    limit,
    token_first,
    token_again,
  };
  for (const part of [sharing, tokens, orgs, keys, agents]) part.close();
  await nc.close();
  return numbers;
}

const numbers = await measure(process.argv[2] ?? '');
process.send?.(numbers, () => {
  process.disconnect?.();
});
