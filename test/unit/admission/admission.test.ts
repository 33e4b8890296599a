// The list of admission checks: its order, that the first rejection wins, and that nothing stays reserved.
import { expect, test } from 'vitest';
import { Admission, type AdmissionParts, checksOf } from '../../../api/admission/admission.ts';
import type { AdmissionRequest } from '../../../api/admission/admission_request.ts';
import { type Intake, PHASES } from '../../../api/admission/check.ts';
import { ADMIT, admitWith, type Decision, reject, type Settled } from '../../../api/admission/decision.ts';
import { ORG_BYTES_MAX, ORG_EVENTS_MAX } from '../../../api/admission/in_flight.ts';
import { ApiError } from '../../../api/http/errors.ts';
import { admittingParts, anAdmission } from '../../support/admission.ts';

const namesOf = (intake: Intake): string[] =>
  checksOf(admittingParts())
    .filter(({ intakes }) => intakes.includes(intake))
    .map(({ phase, name }) => `${phase}: ${name}`);

/** Takes a request through all phases with the given body; the caller releases it. */
async function passThrough(request: AdmissionRequest, { bytes = 10, events = 1 } = {}): Promise<void> {
  request.arrived();
  request.identified('org_a');
  await request.validated();
  const tooMany = request.reserveBytes(bytes);
  if (tooMany !== null) throw tooMany;
  await request.parsing(bytes, () => undefined);
  request.parsed(events);
  await request.committing(() => []);
}

const rejecting = (detail: string) => reject('rate_limited', detail, 7);
const errorFrom = (run: Promise<unknown>): Promise<unknown> =>
  run.then(
    () => null,
    (error: unknown) => error,
  );

test('a request of ingest meets rate, backlog share, bytes, turn, events, disk, the limits of its key and the budget, in this order', () => {
  expect(namesOf('ingest')).toEqual([
    'identified: request_rate',
    'validated: backlog_share',
    'reading: bytes_in_flight',
    'parsing: key_requests',
    'parsing: turn',
    'parsed: events_in_flight',
    'committing: disk',
    'committing: organization',
    'committing: key_models',
    'committing: key_tokens',
    'committing: key_budget',
    'committing: budget',
  ]);
  expect(namesOf('otlp')).toEqual(namesOf('ingest'));
});

test('browser events are charged when they are counted, or when the request fails before that', () => {
  expect(namesOf('app')).toEqual([
    'validated: backlog_share',
    'reading: bytes_in_flight',
    'parsing: key_requests',
    'parsing: turn',
    'parsed: events_in_flight',
    'parsed: event_rate',
    'committing: disk',
    'committing: organization',
    'committing: key_models',
    'committing: key_tokens',
    'committing: key_budget',
    'committing: budget',
    'failed: failed_event_rate',
  ]);
});

test('a call through the gateway meets the bounds on calls, rate, bytes, the limits of its key and the budget, in this order', () => {
  expect(namesOf('gateway')).toEqual([
    'arrived: process_calls',
    'identified: request_rate',
    'validated: organization_calls',
    'reading: bytes_in_flight',
    'committing: key_models',
    'committing: key_requests',
    'committing: key_tokens',
    'committing: key_budget',
    'committing: budget',
  ]);
});

test('what the service records meets disk, organization and budget; a preflight does not ask for the organization', () => {
  expect(namesOf('record')).toEqual(['committing: disk', 'committing: organization', 'committing: budget']);
  expect(namesOf('record_preflight')).toEqual(['committing: disk', 'committing: budget']);
});

test('the list follows the order of the phases', () => {
  const phases = checksOf(admittingParts()).map(({ phase }) => PHASES.indexOf(phase));
  expect(phases).toEqual([...phases].sort((a, b) => a - b));
});

/** Parts in which everything that can reject does, from the given check on; the order is that of ingest. */
const rejectionsFrom = (first: number): Partial<AdmissionParts> => {
  const all: Partial<AdmissionParts>[] = [
    { limits: { take: () => ({ allowed: false, headers: { 'Retry-After': '3' } }) } },
    { backlog: { decide: () => rejecting('backlog') } },
    { turns: { decide: () => rejecting('turn'), timed: (_, work) => work() } },
    { disk: { low: true } },
    { isDeleted: () => true },
    { budgets: { decide: () => rejecting('budget') } },
  ];
  return Object.assign({}, ...all.slice(first)) as Partial<AdmissionParts>;
};

test.each([
  [0, 'request_rate'],
  [1, 'backlog_share'],
  [2, 'turn'],
  [3, 'disk'],
  [4, 'organization'],
  [5, 'budget'],
])('the first check that rejects wins, and no later one is asked (%i: %s)', async (first, name) => {
  const rejectedBy: string[] = [];
  const request = anAdmission({ ...rejectionsFrom(first), onReject: (check) => rejectedBy.push(check) }).begin(
    'ingest',
  );
  expect(await errorFrom(passThrough(request))).toBeInstanceOf(ApiError);
  expect(rejectedBy).toEqual([name]);
});

test('turns a rejection into an error with its code, detail and headers', async () => {
  const rejection = reject('payment_required', 'spent', 60, { headers: { 'X-Quota-Tokens-Status': 'hard_exceeded' } });
  const request = anAdmission({ budgets: { decide: () => rejection } }).begin('ingest');
  expect(await errorFrom(passThrough(request))).toMatchObject({
    code: 'payment_required',
    status: 402,
    detail: 'spent',
    headers: { 'Retry-After': '60', 'X-Quota-Tokens-Status': 'hard_exceeded' },
  });
});

test('adds the headers of the rate limit to the response, whether it admits or rejects', () => {
  for (const allowed of [true, false]) {
    const headers: string[] = [];
    const limits = { take: () => ({ allowed, headers: { 'RateLimit-Remaining': '0' } }) };
    const request = anAdmission({ limits }).begin('otlp', (name, value) => headers.push(`${name}: ${value}`));
    const run = (): void => {
      request.identified('org_a');
    };
    if (allowed) run();
    else expect(run).toThrow(expect.objectContaining({ code: 'rate_limited', headers: {} }) as Error);
    expect(headers).toEqual(['RateLimit-Remaining: 0']);
  }
});

test('charges the events of a failed request once', () => {
  const taken: unknown[] = [];
  const limits: AdmissionParts['limits'] = {
    take: (...asked) => {
      taken.push(asked);
      return { allowed: true, headers: {} };
    },
  };
  const uncounted = anAdmission({ limits }).begin('app');
  uncounted.identified('org_a');
  uncounted.failed();
  expect(taken).toEqual([['app', 'org_a', 1]]);
  const counted = anAdmission({ limits }).begin('app');
  counted.identified('org_a');
  counted.parsed(20);
  counted.failed();
  expect(taken.slice(1)).toEqual([['app', 'org_a', 20]]);
});

test('waits for a decision that takes time, and asks the checks behind it after that', async () => {
  const { promise, resolve } = Promise.withResolvers<Settled>();
  const decisions: Decision[] = [{ kind: 'wait', decided: promise }, ADMIT];
  const request = anAdmission({
    turns: { decide: () => decisions.shift() ?? ADMIT, timed: (_, work) => work() },
  }).begin('ingest');
  request.identified('org_a');
  const parsed = request.parsing(10, () => 'parsed');
  expect(parsed).toBeInstanceOf(Promise);
  resolve(ADMIT);
  expect(await parsed).toBe('parsed');
  expect(request.parsing(10, () => 'at once')).toBe('at once');
  const late = anAdmission({
    budgets: { decide: () => ({ kind: 'wait', decided: Promise.resolve(rejecting('decider')) }) },
  }).begin('ingest');
  await expect(late.committing(() => [])).rejects.toMatchObject({ detail: 'decider', headers: { 'Retry-After': '7' } });
});

test('releases everything reserved when a later check rejects', async () => {
  const admission = new Admission(admittingParts({ budgets: { decide: () => rejecting('budget') } }));
  const first = admission.begin('ingest');
  expect(await errorFrom(passThrough(first, { bytes: ORG_BYTES_MAX, events: ORG_EVENTS_MAX }))).toMatchObject({
    detail: 'budget',
  });
  const second = admission.begin('ingest');
  second.identified('org_a');
  expect(second.reserveBytes(1)).toMatchObject({ code: 'rate_limited' });
  first.release();
  first.release();
  expect(second.reserveBytes(ORG_BYTES_MAX)).toBeNull();
  second.parsed(ORG_EVENTS_MAX);
});

test('releases the call and the budget of a call through the gateway in reverse order, each once', async () => {
  const released: string[] = [];
  const request = anAdmission({
    slots: { take: () => () => released.push('call') },
    budgets: { decide: () => admitWith({ release: () => released.push('budget') }) },
  }).begin('gateway');
  await passThrough(request);
  request.release('committing');
  expect(released).toEqual(['budget']);
  request.release();
  expect(released).toEqual(['budget', 'call']);
});

test('reports to the budget that the log holds the events', async () => {
  const confirmed: unknown[] = [];
  const reservation = { confirm: (at: unknown) => confirmed.push(at), release: () => undefined };
  const request = anAdmission({ budgets: { decide: () => admitWith(reservation) } }).begin('ingest');
  await passThrough(request);
  const positions = new Map([[0, 5]]);
  request.confirm(positions);
  expect(confirmed).toEqual([positions]);
});

test('counts the bytes of calls through the gateway apart from those of ingest', () => {
  const admission = anAdmission();
  const [call, event] = [admission.begin('gateway'), admission.begin('ingest')];
  for (const request of [call, event]) request.identified('org_a');
  expect(call.reserveBytes(ORG_BYTES_MAX)).toBeNull();
  expect(event.reserveBytes(ORG_BYTES_MAX)).toBeNull();
  expect(admission.begin('otlp').reserveBytes(0)).toBeNull();
});
