// What must be true of the other traffic of a run when the load is over: OTLP and gateway spans,
// budgets, webhooks, judges.
import type { RunSql } from '../bench/store.ts';
import type { Receiver } from '../support/receiver.ts';
import { none, type Check, type EventsRead } from './checks.ts';
import type { Client } from './client.ts';
import type { LimitedSide, SideExpected } from './sides.ts';

/** The platform events and the organization that a path of the receiver is subscribed to. */
export interface Subscription {
  path: string;
  org: string;
  events: readonly string[];
}

const lines = (text: string): string[][] =>
  text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => line.split('\t'));

/**
 * Checks that every acknowledged span of an organization is stored once with its tokens, and
 * nothing else but what may be there.
 */
export async function sideSpanChecks(runSql: RunSql, { org, spans, maybe }: SideExpected): Promise<Check[]> {
  const rows = lines(
    await runSql(
      `SELECT trace_id, span_id, count(), sum(input_tokens), sum(output_tokens) FROM spans WHERE org_id = '${org}' GROUP BY trace_id, span_id FORMAT TSV`,
    ),
  );
  const seen = new Set<string>();
  const [doubled, foreign, differing]: [string[], string[], string[]] = [[], [], []];
  for (const [trace = '', span = '', count = '', input = '', output = ''] of rows) {
    const key = `${trace} ${span}`;
    seen.add(key);
    if (count !== '1') doubled.push(key);
    const wanted = spans.get(key);
    if (wanted === undefined && !maybe.has(trace)) foreign.push(key);
    if (wanted !== undefined && count === '1' && (wanted.input !== Number(input) || wanted.output !== Number(output)))
      differing.push(`${key}: ${input} and ${output} tokens`);
  }
  const lost = [...spans.keys()].filter((key) => !seen.has(key));
  return [
    none(`${org}: acknowledged spans lost`, lost.length, lost),
    none(`${org}: spans doubled`, doubled.length, doubled),
    none(`${org}: spans of nothing that was sent`, foreign.length, foreign),
    none(`${org}: spans with other tokens`, differing.length, differing),
  ];
}

/** Compares every API process's use of an organization with the sums. */
export async function budgetMatches(
  runSql: RunSql,
  client: Client,
  { org, key }: { org: string; key: string },
): Promise<Check[]> {
  const sum = await runSql(
    `SELECT sum(input_tokens) + sum(output_tokens) FROM usage_events WHERE org_id = '${org}' FORMAT TSV`,
  );
  const spans = await runSql(
    `SELECT sum(input_tokens) + sum(output_tokens) FROM spans WHERE org_id = '${org}' FORMAT TSV`,
  );
  const checks: Check[] = [];
  for (const [api] of client.address.urls.entries()) {
    const answer = await client.ask('GET', '/v1/budgets', {
      headers: { authorization: `Bearer ${key}`, 'X-Org-Id': org },
      api,
    });
    const used =
      answer?.status === 200
        ? String((JSON.parse(answer.text) as { data: { tokens: { used: number } } }).data.tokens.used)
        : `no answer (${String(answer?.status)})`;
    checks.push({
      what: `${org}: budget of API ${api + 1}, usage and spans say the same tokens`,
      expected: `${sum} ${spans}`,
      found: `${used} ${sum}`,
      breach: used !== sum || sum !== spans,
    });
  }
  return checks;
}

/** Checks that a reached limit admitted nothing later than the contract's second. */
export function limitChecks(side: LimitedSide): Check[] {
  const reached = side.limits.filter(({ reached_at }) => reached_at !== null);
  const late = reached.filter((limit) => limit.late > 0);
  const over = reached.map((limit) => limit.over);
  return [
    {
      what: 'hard limits reached, and tokens let in beyond the worst of them',
      expected: 'any',
      found: `${reached.length}, ${Math.max(0, ...over)}`,
      breach: false,
    },
    none(
      'limits that let something in a second after they were reached',
      late.length,
      late.map((limit) => JSON.stringify(limit)),
    ),
  ];
}

/**
 * Checks that every platform event that an endpoint is subscribed to arrived at least once, and no
 * other did.
 */
export async function webhookChecks(
  read: EventsRead,
  receiver: Receiver,
  subscriptions: readonly Subscription[],
): Promise<Check[]> {
  const told = await read.all();
  return subscriptions.flatMap(({ path, org, events }) => {
    const wanted = new Set(
      told.filter((one) => one.org_id === org && events.includes(one.event)).map((one) => one.event_id),
    );
    const got = receiver.at(path).map(({ event_id }) => event_id);
    const distinct = new Set(got);
    const missing = [...wanted].filter((id) => !distinct.has(id));
    const foreign = [...distinct].filter((id) => !wanted.has(id));
    return [
      none(`webhooks to ${path} (${wanted.size} events) not delivered`, missing.length, missing),
      none(`webhooks to ${path} of events that never were`, foreign.length, foreign),
      {
        what: `webhooks to ${path} delivered again`,
        expected: 'any',
        found: String(got.length - distinct.size),
        breach: false,
      },
    ];
  });
}

/** Returns the number of webhooks still missing. */
export async function webhooksMissing(
  read: EventsRead,
  receiver: Receiver,
  subscriptions: readonly Subscription[],
): Promise<number> {
  const checks = await webhookChecks(read, receiver, subscriptions);
  return checks.filter(({ what }) => what.endsWith('not delivered')).reduce((sum, { found }) => sum + Number(found), 0);
}

/** Checks that the judge gave every trace of the main organization one score. */
export async function judgeChecks(runSql: RunSql, judge: string, traces: ReadonlySet<string>): Promise<Check[]> {
  const rows = lines(
    await runSql(
      `SELECT trace_id, count() FROM judge_scores FINAL WHERE judge_id = '${judge}' AND eval_id = '' GROUP BY trace_id FORMAT TSV`,
    ),
  );
  const scored = new Map(rows.map(([trace = '', count = '']) => [trace, count]));
  const without = [...traces].filter((trace) => !scored.has(trace));
  const more = [...scored].filter(([, count]) => count !== '1').map(([trace]) => trace);
  const foreign = [...scored.keys()].filter((trace) => !traces.has(trace));
  return [
    none('traces without a score of the judge', without.length, without),
    none('traces with more than one score of the judge', more.length, more),
    none('scores of traces that never were', foreign.length, foreign),
  ];
}
