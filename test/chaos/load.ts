// The whole load of a run and its surroundings: organizations, a judge, webhook endpoints and their
// receiver, the gateway's upstream.
import type { RunSql } from '../bench/store.ts';
import { startReceiver, status, type Receiver } from '../support/receiver.ts';
import { say, startUpstream, type TestUpstream } from '../support/upstream.ts';
import type { Check, EventsRead } from './checks.ts';
import { Client } from './client.ts';
import { Reads } from './reads.ts';
import { Sender, type SenderOptions } from './sender.ts';
import {
  budgetMatches,
  judgeChecks,
  limitChecks,
  sideSpanChecks,
  webhookChecks,
  webhooksMissing,
  type Subscription,
} from './side_checks.ts';
import { GatewaySide, LimitedSide, OtlpSide, type SideExpected } from './sides.ts';
import type { StackAddress } from './stack.ts';

const OTLP_EVERY_MS = 60;
const GATEWAY_EVERY_MS = 150;
const LIMITED_EVERY_MS = 15;
/** A receiver fails one in this many attempts. */
const FLAKY_EVERY = 5;

/** What surrounds the stack; started before it, as the stack needs its addresses. */
export interface Around {
  receiver: Receiver;
  upstream: TestUpstream;
  /** Settings of the service. */
  env: Record<string, string>;
  close(): Promise<void>;
}

export async function startAround(): Promise<Around> {
  const [receiver, upstream] = await Promise.all([startReceiver(), startUpstream()]);
  upstream.behave(
    say('Paris.', { prompt_tokens: GatewaySide.TOKENS.input, completion_tokens: GatewaySide.TOKENS.output }),
  );
  let tries = 0;
  receiver.behave('/flaky', (res, received) => {
    tries += 1;
    status(tries % FLAKY_EVERY === 0 ? 503 : 200)(res, received);
  });
  return {
    receiver,
    upstream,
    env: { SERVICE_LLM_BASE_URL: upstream.url },
    close: async () => {
      await Promise.all([receiver.close(), upstream.close()]);
    },
  };
}

export class Load {
  readonly sender: Sender;
  readonly gateway: GatewaySide;
  /** Reads, which run during faults that callers must not notice. */
  readonly reads: Reads;
  readonly #around: Around;
  readonly #client: Client;
  readonly #otlp: OtlpSide;
  readonly #limited: LimitedSide;
  readonly #judge: string;
  readonly #subscriptions: readonly Subscription[];

  private constructor(parts: {
    around: Around;
    client: Client;
    sender: Sender;
    otlp: OtlpSide;
    gateway: GatewaySide;
    limited: LimitedSide;
    judge: string;
    subscriptions: readonly Subscription[];
  }) {
    this.#around = parts.around;
    this.#client = parts.client;
    this.sender = parts.sender;
    this.#otlp = parts.otlp;
    this.gateway = parts.gateway;
    this.reads = new Reads(parts.client.address);
    this.#limited = parts.limited;
    this.#judge = parts.judge;
    this.#subscriptions = parts.subscriptions;
  }

  /** Creates organizations, judge, endpoints and limits; nothing is sent yet. */
  static async open(address: StackAddress, around: Around, options: SenderOptions & { seed: number }): Promise<Load> {
    const client = new Client(address);
    const orgs = await Promise.all(['org_otlp', 'org_gateway', 'org_limited'].map((org) => makeOrg(client, org)));
    const [otlp, gateway, limited] = orgs;
    if (otlp === undefined || gateway === undefined || limited === undefined) throw new Error('an org is missing');
    const main = { org: address.org, key: address.key };
    const subscriptions: Subscription[] = [
      { path: '/main', org: main.org, events: ['trace.completed', 'judge.threshold_breach'] },
      { path: '/flaky', org: otlp.org, events: ['trace.started', 'trace.completed'] },
      { path: '/limited', org: limited.org, events: ['budget.hard_exceeded', 'trace.completed'] },
    ];
    const keys = new Map([main, ...orgs].map(({ org, key }) => [org, key]));
    for (const { path, org, events } of subscriptions)
      await client.must(
        'POST',
        `/orgs/${org}/webhooks`,
        { 'X-Org-Api-Key': keys.get(org) ?? '', 'X-Org-Id': org },
        { url: `${around.receiver.url}${path}`, events },
      );
    const judge = await makeJudge(client, main);
    const side = { address, seed: options.seed, ...(options.file === undefined ? {} : { file: options.file }) };
    const limitedSide = new LimitedSide(limited, { ...side, everyMs: LIMITED_EVERY_MS });
    await limitedSide.raise();
    return new Load({
      around,
      client,
      sender: new Sender(address, options),
      otlp: new OtlpSide(otlp, { ...side, everyMs: OTLP_EVERY_MS }),
      gateway: new GatewaySide(gateway, { ...side, everyMs: GATEWAY_EVERY_MS }),
      limited: limitedSide,
      judge,
      subscriptions,
    });
  }

  start(): void {
    for (const part of [this.sender, this.#otlp, this.gateway, this.#limited]) part.start();
  }

  /** Resolves when every request in flight is acknowledged or rejected. */
  async stop(): Promise<void> {
    await Promise.all([this.sender, this.#otlp, this.gateway, this.#limited].map((part) => part.stop()));
  }

  /**
   * Events of every kind acknowledged as stored; gateway calls are answered whether or not they can
   * be stored at that time.
   */
  get acknowledged(): number {
    return this.sender.acknowledged + this.#otlp.expected.spans.size + this.#limited.expected.spans.size;
  }

  /** Rows that must be in the store at least. */
  get rows(): number {
    const main = [...this.sender.expected.spans.values()].reduce((sum, count) => sum + count, 0);
    return main + this.#sides.reduce((sum, { spans }) => sum + spans.size, 0);
  }

  /** Every acknowledged trace of all organizations. */
  get traces(): Set<string> {
    const traces = new Set(this.sender.expected.traces);
    for (const { spans } of this.#sides) for (const key of spans.keys()) traces.add(key.slice(0, key.indexOf(' ')));
    return traces;
  }

  get faults(): string[] {
    return [this.sender, this.#otlp, this.gateway, this.#limited, this.reads].flatMap((part) => part.faults);
  }

  webhooksMissing(read: EventsRead): Promise<number> {
    return webhooksMissing(read, this.#around.receiver, this.#subscriptions);
  }

  /** Returns whether every budget agrees with the sums. */
  async budgetsAgree(runSql: RunSql): Promise<boolean> {
    const checks = await Promise.all(this.#withBudgets.map((org) => budgetMatches(runSql, this.#client, org)));
    return checks.flat().every(({ breach }) => !breach);
  }

  async checks(runSql: RunSql, read: EventsRead): Promise<Check[]> {
    const groups: Check[][] = [];
    for (const side of this.#sides) groups.push(await sideSpanChecks(runSql, side));
    for (const org of this.#withBudgets) groups.push(await budgetMatches(runSql, this.#client, org));
    groups.push(limitChecks(this.#limited));
    groups.push(await judgeChecks(runSql, this.#judge, this.sender.expected.traces));
    groups.push(await webhookChecks(read, this.#around.receiver, this.#subscriptions));
    return groups.flat();
  }

  get #sides(): SideExpected[] {
    return [this.#otlp.expected, this.gateway.expected, this.#limited.expected];
  }

  get #withBudgets(): { org: string; key: string }[] {
    const { org, key } = this.#client.address;
    return [{ org, key }, ...this.#sides.map((side) => ({ org: side.org, key: side.key }))];
  }
}

async function makeOrg(client: Client, org: string): Promise<{ org: string; key: string }> {
  const operator = { authorization: `Bearer ${client.address.adminToken}` };
  const owner = { user_id: `owner_${org}`, email: `${org}@example.com` };
  // Accepted before the answer was lost: 409 means created.
  await client.must(
    'POST',
    '/admin/orgs',
    operator,
    { org_id: org, name: org, plan_name: 'enterprise', owner },
    [201, 409],
  );
  const made = (await client.must('POST', `/admin/orgs/${org}/api-keys`, operator, {
    name: 'chaos',
    scopes: ['*'],
  })) as {
    raw_key: string;
  };
  return { org, key: made.raw_key };
}

async function makeJudge(client: Client, { org, key }: { org: string; key: string }): Promise<string> {
  const made = (await client.must(
    'POST',
    '/v1/judges',
    { 'X-Org-Api-Key': key, 'X-Org-Id': org },
    {
      name: 'no refund',
      kind: 'deterministic',
      enabled: true,
      rule: { type: 'regex_absent', pattern: '(?i)refund', fields: ['prompt', 'response'] },
      threshold: { pass: 1 },
    },
  )) as { data: { judge_id: string } };
  return made.data.judge_id;
}
