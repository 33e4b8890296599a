// Opens, advances and resolves incidents. It takes clusters with new traces, or the current time,
// and writes records in KV; the settler copies them to the store and publishes their events. Guarantees: any number of
// workers may do so at a time, and each step is taken by one of them; an organization has at most
// one open incident of a cluster, and at most OPEN_PER_ORG_MAX open incidents.
import type { SystemMutation } from '../../ops/exchange/audit_log.ts';
import type { Logger } from '../../ops/platform/logger.ts';
import {
  incidentKey,
  type IncidentRecord,
  type IncidentTraces,
  RESOLVED_BY_TIME,
} from '../../schemas/records/incident.ts';
import type { ClickHouse } from '../../sql/client/client.ts';
import { LOOKUP_MAX, readFloors, readStretches, readTallies } from '../../sql/stores/incidents.ts';
import { closedIncident, movedIncident, openedIncident } from '../domain/incidents/incident_record.ts';
import { firstSpell, isQuiet, lookFrom, progressOf, QUIET_MS, type Spell } from '../domain/incidents/incidents.ts';
import type { Touched } from './counter.ts';
import type { IncidentRecords, StoredIncident } from './records.ts';
import type { IncidentSettler } from './settler.ts';

/**
 * Maximum number of open incidents of an organization; at the bound, no further one is opened. It
 * bounds what every process holds in memory.
 */
const OPEN_PER_ORG_MAX = 1000;
/**
 * Maximum number of steps of a cluster in one call: traces of a long time that are counted at once
 * may form several incidents, one after the other.
 */
const ROUNDS_MAX = 50;
/**
 * Minimum advance of a record's last_ms, so that a stream of failing traces is not a stream of
 * writes.
 */
const LAST_STEP_MS = 10_000;
/** Name of the actor in audit records. */
const BY = 'incidents';
/** Later than any time. */
const FOREVER_MS = 8_640_000_000_000_000;

export interface IncidentKeeperOptions {
  records: IncidentRecords;
  settler: Pick<IncidentSettler, 'settle' | 'settleKey'>;
  clickhouse: ClickHouse;
  logger: Logger;
  /**
   * Makes a mutation of the service's own, with its record in the audit log.
   * @throws AuditUnavailable when nothing was tried
   */
  record: (mutation: SystemMutation, mutate: () => Promise<Readonly<Record<string, unknown>> | null>) => Promise<void>;
  /** Milliseconds since the epoch. */
  now: () => number;
}

/** A cluster with its record, and the range from which its traces are read. */
interface Case extends Touched {
  key: string;
  stored: StoredIncident | null;
  after_ms: number;
  read_from_ms: number;
}

type ClusterTally = Awaited<ReturnType<typeof readTallies>>[number];
/** A cluster between two instants. */
type Stretch = Pick<Touched, 'org_id' | 'cluster_id'> & { from_ms: number; until_ms: number };

const clusterKey = ({ org_id, cluster_id }: Pick<Touched, 'org_id' | 'cluster_id'>): string =>
  incidentKey(org_id, cluster_id);

export class IncidentKeeper {
  readonly #options: IncidentKeeperOptions;
  /** Organizations at OPEN_PER_ORG_MAX, so that it is logged once. */
  readonly #full = new Set<string>();

  constructor(options: IncidentKeeperOptions) {
    this.#options = options;
  }

  /**
   * Opens and advances the incidents of clusters with new traces.
   * @throws Error when a store is unavailable, and the call is to be retried
   */
  async advance(touched: readonly Touched[]): Promise<void> {
    const earliest = new Map<string, Touched>();
    for (const one of touched) {
      const key = clusterKey(one);
      if (one.from_ms < (earliest.get(key)?.from_ms ?? Infinity)) earliest.set(key, one);
    }
    const all = [...earliest.values()];
    for (let at = 0; at < all.length; at += LOOKUP_MAX) {
      let left = all.slice(at, at + LOOKUP_MAX);
      for (let round = 0; left.length > 0; round++) {
        if (round === ROUNDS_MAX) throw new Error(`${left.length} clusters have more incidents than one call handles`);
        left = await this.#round(left);
      }
    }
  }

  /** Resolves the incidents that are over as of an instant. */
  async resolveQuiet(now: number, signal: AbortSignal): Promise<{ open: number; resolved: number }> {
    const open = this.#options.records.all().filter(({ closed }) => closed === null);
    const over: Touched[] = [];
    for (let at = 0; at < open.length; at += LOOKUP_MAX) {
      const some = open.slice(at, at + LOOKUP_MAX);
      const tallies = await this.#tallies(some.map((record) => ({ ...record, until_ms: FOREVER_MS })));
      for (const record of some) {
        signal.throwIfAborted();
        const tally = tallies.get(clusterKey(record));
        const until_ms = Math.max(tally?.last_ms ?? 0, record.last_ms);
        if (!isQuiet({ last_ms: until_ms }, now)) continue;
        const resolved = await this.#resolve(record, tally ?? record.opened, { at: now, until_ms });
        if (resolved) over.push({ org_id: record.org_id, cluster_id: record.cluster_id, from_ms: until_ms + 1 });
      }
    }
    // Traces that were counted after the look and before the end do not belong to the resolved
    // incident, and may form the next one.
    await this.advance(over);
    return { open: open.length, resolved: over.length };
  }

  /** Returns false when the incident changed since it was read. */
  async #resolve(
    { org_id, cluster_id, incident_id }: IncidentRecord,
    traces: IncidentTraces,
    end: { at: number; until_ms: number },
  ): Promise<boolean> {
    const key = incidentKey(org_id, cluster_id);
    const stored = await this.#options.records.read(key);
    if (stored?.record.incident_id !== incident_id || stored.record.closed !== null) return false;
    if (stored.record.last_ms > end.until_ms) return false;
    const closed = closedIncident(stored.record, traces, { ...end, by: RESOLVED_BY_TIME });
    if (!(await this.#close(key, closed, stored.revision))) return false;
    await this.#options.settler.settleKey(key);
    return true;
  }

  /**
   * Writes the end of an incident, with its record in the audit log.
   * @returns false when another write came first
   */
  async #close(key: string, closed: IncidentRecord, revision: number): Promise<boolean> {
    const { record, records } = this.#options;
    const { org_id, incident_id } = closed;
    let won = false;
    await record(
      { org_id, action: 'incident.resolve', target: { type: 'incident', id: incident_id }, by: BY },
      async () => {
        won = await records.write(key, closed, revision);
        return won ? { status: 'resolved', trace_count: closed.closed?.trace_count ?? null } : null;
      },
    );
    return won;
  }

  /**
   * Takes one step of each cluster.
   * @returns the clusters that may have another step
   */
  async #round(touched: readonly Touched[]): Promise<Touched[]> {
    const again: Touched[] = [];
    const cases: Case[] = [];
    const stored = await Promise.all(touched.map((one) => this.#options.records.read(clusterKey(one))));
    for (const [index, one] of touched.entries()) {
      const held = stored[index] ?? null;
      if (held !== null && held.record.closed !== null) {
        await this.#options.settler.settle(clusterKey(one), held);
        again.push(one);
      } else cases.push(caseOf(one, held));
    }
    if (cases.length === 0) return again;
    const times = await this.#times(cases);
    await this.#floor(cases, times);
    const opening: { one: Case; spell: Spell; more: boolean }[] = [];
    for (const one of cases) {
      const own = times.get(one.key) ?? [];
      if (one.stored !== null) {
        if (await this.#move(one, one.stored, own)) again.push(one);
        continue;
      }
      const spell = firstSpell(own);
      if (spell !== null) opening.push({ one, spell, more: (own.at(-1) ?? 0) > spell.last_ms });
    }
    const tallies = await this.#tallies(
      opening.map(({ one, spell }) => ({ ...one, from_ms: spell.from_ms, until_ms: spell.last_ms })),
    );
    for (const { one, spell, more } of opening) {
      const opened = await this.#open(one, spell, tallies.get(one.key));
      if (opened === 'lost' || (opened === 'opened' && more)) again.push(one);
    }
    return again;
  }

  /**
   * Leaves out the traces that belong to an earlier incident of their cluster, which is over. Only
   * clusters whose traces form an incident are looked up: without the earlier traces, the others
   * form none either.
   */
  async #floor(cases: readonly Case[], times: Map<string, number[]>): Promise<void> {
    const opening = cases.filter(({ key, stored }) => stored === null && firstSpell(times.get(key) ?? []) !== null);
    if (opening.length === 0) return;
    const floors = await readFloors(this.#options.clickhouse, pairsOf(opening));
    const floorOf = new Map(floors.map((row) => [clusterKey(row), row.until_ms]));
    const overlapping: Case[] = [];
    for (const one of opening) {
      one.after_ms = floorOf.get(one.key) ?? 0;
      if (one.after_ms < one.read_from_ms) continue;
      one.read_from_ms = one.after_ms + 1;
      overlapping.push(one);
    }
    if (overlapping.length === 0) return;
    const later = await this.#times(overlapping);
    for (const { key } of overlapping) times.set(key, later.get(key) ?? []);
  }

  async #times(cases: readonly Case[]): Promise<Map<string, number[]>> {
    const froms_ms = cases.map(({ read_from_ms }) => read_from_ms);
    const rows = await readStretches(this.#options.clickhouse, {
      ...pairsOf(cases),
      froms_ms,
      from_ms: Math.min(...froms_ms),
    });
    const times = new Map<string, number[]>();
    for (const row of rows) {
      const own = times.get(clusterKey(row)) ?? [];
      own.push(...row.first_ms);
      // A minute with fewer traces than the bound lists them all.
      if (row.last_ms > (row.first_ms.at(-1) ?? 0)) own.push(row.last_ms);
      times.set(clusterKey(row), own);
    }
    return times;
  }

  async #tallies(stretches: readonly Stretch[]): Promise<Map<string, ClusterTally>> {
    if (stretches.length === 0) return new Map();
    const froms_ms = stretches.map(({ from_ms }) => from_ms);
    const untils_ms = stretches.map(({ until_ms }) => until_ms);
    const params = { ...pairsOf(stretches), froms_ms, untils_ms, from_ms: Math.min(...froms_ms) };
    const rows = await readTallies(this.#options.clickhouse, params);
    return new Map(rows.map((row) => [clusterKey(row), row]));
  }

  async #open(
    { key, org_id, after_ms }: Case,
    spell: Spell,
    tally: ClusterTally | undefined,
  ): Promise<'opened' | 'refused' | 'lost'> {
    const { records, logger, now } = this.#options;
    if (tally === undefined) return 'lost';
    if (records.countOf(org_id) >= OPEN_PER_ORG_MAX) {
      if (!this.#full.has(org_id))
        logger.warn(
          { org_id, open_max: OPEN_PER_ORG_MAX },
          'an organization has as many open incidents as it may have; no more are opened',
        );
      this.#full.add(org_id);
      return 'refused';
    }
    this.#full.delete(org_id);
    const record = openedIncident(tally, spell, tally, { now: now(), after_ms });
    if (!(await records.create(key, record))) return 'lost';
    logger.info({ org_id, incident_id: record.incident_id, traces: tally.trace_count }, 'incident opened');
    return 'opened';
  }

  /**
   * Advances an open incident.
   * @returns true when there may be another step: the incident is over, or another worker was
   * faster
   */
  async #move({ key }: Case, { record, revision }: StoredIncident, times: readonly number[]): Promise<boolean> {
    const { from_ms, last_ms, ended } = progressOf(record, times);
    if (ended) {
      const tallies = await this.#tallies([{ ...record, from_ms, until_ms: last_ms }]);
      const moved = movedIncident(record, { from_ms, last_ms });
      const end = { at: last_ms + QUIET_MS, by: RESOLVED_BY_TIME, until_ms: last_ms };
      if (await this.#close(key, closedIncident(moved, tallies.get(key) ?? record.opened, end), revision))
        await this.#options.settler.settleKey(key);
      return true;
    }
    if (from_ms === record.from_ms && last_ms - record.last_ms < LAST_STEP_MS) return false;
    return !(await this.#options.records.write(key, movedIncident(record, { from_ms, last_ms }), revision));
  }
}

function caseOf(touched: Touched, stored: StoredIncident | null): Case {
  const after_ms = stored?.record.after_ms ?? 0;
  const read_from_ms = Math.max(after_ms + 1, lookFrom(stored?.record ?? null, touched.from_ms));
  return { ...touched, key: clusterKey(touched), stored, after_ms, read_from_ms };
}

function pairsOf(clusters: readonly Pick<Touched, 'org_id' | 'cluster_id'>[]): { orgs: string[]; clusters: string[] } {
  return { orgs: clusters.map(({ org_id }) => org_id), clusters: clusters.map(({ cluster_id }) => cluster_id) };
}
