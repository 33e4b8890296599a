// Settles incidents: it shows their newest state as rows in ClickHouse, publishes their events, and
// notes in the record that both are done. The leader settles all of them; another worker settles a
// single one that is in its way. Guarantees: a later run does what a crash left undone; an event
// that is published twice has the same id; the row exists before the event is published.
import type { Logger } from '../../ops/platform/logger.ts';
import type { ClickHouse } from '../../sql/client/client.ts';
import { writeIncidents } from '../../sql/stores/incidents.ts';
import { createdEvent, type IncidentEvent, incidentRow, resolvedEvent } from '../domain/incidents/incident_record.ts';
import type { IncidentRecords, StoredIncident } from './records.ts';

/** Interval at which the leader looks for what was left undone. */
const INTERVAL_MS = 1000;
/**
 * Maximum number of rows of one statement. Hundreds of incidents may open at once, and one
 * statement for each would delay landings.
 */
const ROWS_MAX = 200;

export interface IncidentSettlerOptions {
  records: IncidentRecords;
  clickhouse: ClickHouse;
  logger: Logger;
  isLeader: () => boolean;
  /** Resolves when the event is stored in EVENTS. */
  publish: (event: IncidentEvent) => Promise<void>;
}

export class IncidentSettler {
  readonly #options: IncidentSettlerOptions;
  #timer: NodeJS.Timeout | null = null;
  #stopListening: (() => void) | null = null;
  #settling: Promise<void> | null = null;
  /** True when a record changed after the look under way began. */
  #again = false;

  constructor(options: IncidentSettlerOptions) {
    this.#options = options;
  }

  /** Starts to settle records that change, while this worker leads. */
  start(): void {
    const soon = (): void => {
      this.#soon();
    };
    this.#stopListening = this.#options.records.onUnsettled(soon);
    this.#timer = setInterval(soon, INTERVAL_MS);
  }

  async stop(): Promise<void> {
    this.#stopListening?.();
    if (this.#timer !== null) clearInterval(this.#timer);
    this.#timer = null;
    await this.#settling;
  }

  /** Settles the record at a key, if it is not settled. */
  async settleKey(key: string): Promise<void> {
    const stored = await this.#options.records.read(key);
    if (stored !== null && stored.record.settled < stored.record.version) await this.settle(key, stored);
  }

  /**
   * Settles a state; an incident that is over is deleted from the bucket. When the record changed
   * meanwhile, its next state is settled later.
   */
  async settle(key: string, stored: StoredIncident): Promise<void> {
    await this.#show([stored]);
    await this.#publish(key, stored);
  }

  async #show(incidents: readonly StoredIncident[]): Promise<void> {
    await writeIncidents(
      this.#options.clickhouse,
      incidents.map(({ record }) => incidentRow(record)),
    );
  }

  /** Publishes the state of an incident whose row is stored, and notes that it is settled. */
  async #publish(key: string, { record, revision }: StoredIncident): Promise<void> {
    const { records, publish } = this.#options;
    if (record.settled === 0) await publish(createdEvent(record));
    const resolved = resolvedEvent(record);
    if (resolved === null) {
      await records.write(key, { ...record, settled: record.version }, revision);
      return;
    }
    await publish(resolved);
    await records.remove(key, revision);
  }

  #soon(): void {
    this.#again = true;
    this.#settling ??= this.#settleAll().finally(() => {
      this.#settling = null;
      if (this.#again && this.#timer !== null) this.#soon();
    });
  }

  async #settleAll(): Promise<void> {
    this.#again = false;
    const { records, logger, isLeader } = this.#options;
    if (!isLeader()) return;
    const unsettled = records.unsettled();
    for (let at = 0; at < unsettled.length; at += ROWS_MAX) {
      const some = unsettled.slice(at, at + ROWS_MAX);
      try {
        await this.#show(some.map(([, stored]) => stored));
        for (const [key, stored] of some) await this.#publish(key, stored);
      } catch (error) {
        logger.warn({ err: error, incidents: unsettled.length - at }, 'incidents could not be published; trying again');
        this.#again = false;
        return;
      }
    }
  }
}
