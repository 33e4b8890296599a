// Watches budgets and sends each notification of a threshold or limit once: platform events, alert
// webhooks, and mails to the owner. It takes reports of landings, budgets, and the calls of the job
// that examines run rates. Every worker keeps the accounts; only the leader sends. Guarantees:
// events and mails are sent first, with ids that follow from the alert, then it is noted that they
// were. After a crash in between they are sent again under the same ids, and none is lost.
import type { Logger } from 'pino';
import { UsageFollower } from '../../ops/exchange/usage_follower.ts';
import { watch } from '../../ops/platform/nats/watch.ts';
import type { WatchedBucket } from '../../ops/platform/nats/watched_bucket.ts';
import { type Log, logBaseReader } from '../../ops/platform/nats/open_log.ts';
import type { Mail } from '../../schemas/codec.ts';
import { type BudgetRecord, type BudgetState } from '../../schemas/records/budget.ts';
import { orgKey, orgOfKey } from '../../schemas/records/org.ts';
import type { ClickHouse } from '../../sql/client/client.ts';
import { readPeriodSums } from '../../sql/stores/usage.ts';
import { addUsed, isBudgeted, limitedAgents, nothingUsed, type Used } from '../domain/budgets/budget.ts';
import {
  type BudgetNow,
  cumulativeAlerts,
  type DueAlert,
  projectedAlerts,
  stateIn,
  sentBy,
  stateAfter,
} from '../domain/budgets/alerts.ts';
import { type AlertEvent, type AlertPlace, eventsOfAlert, mailOfAlert } from '../domain/budgets/alert_events.ts';
import { picoToDecimal, usdToPico } from '../domain/pricing/money.ts';
import { periodAt, type PeriodRule } from '../domain/budgets/period.ts';
import { UsageLedger } from '../domain/budgets/usage_ledger.ts';

const TICK_MS = 200;

export interface KeeperDeps {
  log: Log;
  /** Budgets of all organizations, watched; the caller closes it. */
  records: WatchedBucket<BudgetRecord>;
  clickhouse: ClickHouse;
  logger: Logger;
  now: () => number;
  isLeader: () => boolean;
  /** Returns when the organization's budget period starts. */
  ruleOf: (org_id: string) => PeriodRule;
  /** Returns the name and first owner of an organization; null while it is not known. */
  orgOf: (org_id: string) => { name: string; owner_email: string } | null;
  /** Resolves when all are stored in EVENTS. */
  publish: (org_id: string, events: readonly AlertEvent[]) => Promise<void>;
  /** Resolves when the mail is queued. */
  mail: (mail: Mail) => Promise<void>;
  /** Resolves when the event is queued for the organization's alert webhook. */
  alertWebhook: (record: BudgetRecord, event: AlertEvent) => Promise<void>;
}

export class BudgetKeeper {
  readonly #deps: KeeperDeps;
  readonly #records: WatchedBucket<BudgetRecord>;
  readonly #states: WatchedBucket<BudgetState>;
  readonly #ledger = new UsageLedger();
  readonly #follower: UsageFollower;
  readonly #dirty = new Set<string>();
  readonly #timer: NodeJS.Timeout;
  #notifying: Promise<void> | null = null;

  private constructor(deps: KeeperDeps, states: WatchedBucket<BudgetState>) {
    const { records } = deps;
    this.#deps = deps;
    this.#records = records;
    this.#states = states;
    this.#follower = new UsageFollower({
      nc: deps.log.nc,
      clickhouse: deps.clickhouse,
      ledger: this.#ledger,
      toPico: usdToPico,
      now: deps.now,
      logBase: logBaseReader(deps.log),
      periodOf: (org_id) => periodAt(deps.ruleOf(org_id), deps.now()),
      onMoved: (orgs) => {
        for (const org_id of orgs) this.#dirty.add(org_id);
      },
      onProblem: (problem, cause) => {
        deps.logger.warn({ err: cause }, problem);
      },
    });
    for (const record of records.values()) this.#follow(record);
    records.onChange((key, held) => {
      // Without a budget, the sums of the organization must go: one with the same id may be created
      // again.
      if (held === null) this.#follower.unfollow(orgOfKey(key));
      else this.#follow(held.value);
    });
    this.#timer = setInterval(() => {
      this.#notifying ??= this.#notifyDirty().finally(() => {
        this.#notifying = null;
      });
    }, TICK_MS);
  }

  static async open(deps: KeeperDeps): Promise<BudgetKeeper> {
    const onProblem = (problem: string, cause: unknown) => {
      deps.logger.warn({ err: cause }, problem);
    };
    return new BudgetKeeper(deps, await watch(deps.log, 'budget_states', onProblem));
  }

  /**
   * Returns true when accounts of the organization are kept: only then are its landings reported.
   */
  isBudgeted(org_id: string): boolean {
    const record = this.#records.get(orgKey(org_id));
    return record !== undefined && isBudgeted(record);
  }

  /** Returns the organization's agents that have limits of their own. */
  limitedAgents(org_id: string): string[] {
    const record = this.#records.get(orgKey(org_id));
    return record === undefined ? [] : limitedAgents(record);
  }

  /**
   * Sends alerts for thresholds that are reached as of an instant, or that the run rate will reach
   * before the period ends. Use is read from the store.
   * @returns the number of organizations examined, and of alerts sent
   */
  async notifyAsOf(now: number, signal: AbortSignal): Promise<{ orgs: number; alerts: number }> {
    const records = [...this.#records.values()].filter(isBudgeted);
    let alerts = 0;
    for (const record of records) {
      signal.throwIfAborted();
      const period = periodAt(this.#deps.ruleOf(record.org_id), now);
      const asked = { org_id: record.org_id, from: period.start, until: period.end, agents: limitedAgents(record) };
      const sums = await readPeriodSums(this.#deps.clickhouse, asked, { signal });
      const used = nothingUsed();
      const agents = new Map<string, Used>();
      for (const { cost_usd, ...sum } of sums) {
        const part = { ...sum, cost_pico_usd: usdToPico(cost_usd) };
        addUsed(used, part);
        const own = agents.get(sum.agent_id) ?? nothingUsed();
        addUsed(own, part);
        agents.set(sum.agent_id, own);
      }
      const agentUsed = (agent_id: string) => agents.get(agent_id) ?? nothingUsed();
      const budget: BudgetNow = { record, used, agentUsed, period, now };
      alerts += await this.#notify(budget, (at, told) => [...cumulativeAlerts(at, told), ...projectedAlerts(at, told)]);
    }
    return { orgs: records.length, alerts };
  }

  /**
   * Begins the period of an instant for every organization that was sent an alert. Use starts over
   * by itself, as it is a sum over the hours of a period, and so do alerts, which are kept by
   * period.
   * @returns the number of organizations for which the period is new
   */
  async startOver(now: number, signal: AbortSignal): Promise<number> {
    let orgs = 0;
    for (const { org_id } of [...this.#states.values()]) {
      signal.throwIfAborted();
      const { start } = periodAt(this.#deps.ruleOf(org_id), now);
      const isNew = (state: BudgetState | undefined) => stateIn(state, start) === null;
      if (!isNew(this.#states.get(orgKey(org_id)))) continue;
      await this.#states.change(orgKey(org_id), (state) =>
        isNew(state)
          ? stateAfter(state ?? null, { org_id, periodStart: start, told: { keys: [], crossed: {} } })
          : null,
      );
      orgs++;
    }
    return orgs;
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer);
    this.#follower.close();
    await this.#notifying;
    this.#states.close();
  }

  #follow(record: BudgetRecord): void {
    if (!isBudgeted(record)) {
      this.#follower.unfollow(record.org_id);
      return;
    }
    this.#follower.follow(record.org_id, limitedAgents(record));
    this.#dirty.add(record.org_id);
  }

  async #notifyDirty(): Promise<void> {
    if (!this.#deps.isLeader()) return;
    for (const org_id of [...this.#dirty]) {
      this.#dirty.delete(org_id);
      const record = this.#records.get(orgKey(org_id));
      if (record === undefined || !this.#ledger.isSettled(org_id)) continue;
      try {
        await this.#notify(this.#now(record), cumulativeAlerts);
      } catch (error) {
        this.#dirty.add(org_id);
        this.#deps.logger.warn({ err: error }, 'an alert of a budget could not be sent; trying again');
        return;
      }
    }
  }

  /** Returns the organization's budget by the account that is kept here. */
  #now(record: BudgetRecord): BudgetNow {
    const { org_id } = record;
    const { start, end } = this.#follower.period(org_id);
    return {
      record,
      used: this.#ledger.used(org_id),
      agentUsed: (agent_id) => this.#ledger.agentUsed(org_id, agent_id),
      period: { kind: this.#deps.ruleOf(org_id).period, start, end },
      now: this.#deps.now(),
    };
  }

  async #notify(
    budget: BudgetNow,
    find: (budget: BudgetNow, told: ReadonlySet<string>) => DueAlert[],
  ): Promise<number> {
    const { record, used, period, now } = budget;
    const { org_id } = record;
    const alerts = find(budget, new Set(stateIn(this.#states.get(orgKey(org_id)), period.start)?.told));
    if (alerts.length === 0) return 0;
    const org = this.#deps.orgOf(org_id);
    const place: AlertPlace = {
      org_id,
      org_name: org?.name ?? org_id,
      period_start: new Date(period.start).toISOString(),
    };
    for (const alert of alerts) await this.#send(record, alert, place, org?.owner_email ?? null);
    const told = sentBy(alerts, now, picoToDecimal(used.cost_pico_usd));
    await this.#states.change(orgKey(org_id), (state) =>
      stateAfter(state ?? null, { org_id, periodStart: period.start, told }),
    );
    return alerts.filter(({ by_threshold }) => by_threshold !== true).length;
  }

  async #send(record: BudgetRecord, alert: DueAlert, place: AlertPlace, ownerEmail: string | null): Promise<void> {
    const events = eventsOfAlert(alert, place);
    if (events.length === 0) return;
    await this.#deps.publish(record.org_id, events);
    if (alert.kind !== 'threshold' || record.alerts === null) return;
    const { channels } = record.alerts;
    if (channels.includes('email') && ownerEmail !== null)
      await this.#deps.mail({
        ...mailOfAlert(alert, place),
        org_id: record.org_id,
        to: ownerEmail,
        secret: '',
        created_at: this.#deps.now(),
      });
    const breach = events.find(({ event }) => event === 'budget.threshold_breach');
    if (channels.includes('webhook') && breach !== undefined) await this.#deps.alertWebhook(record, breach);
  }
}
