// A model of everything that changes an account: requests reserve and publish, a worker lands usage
// and reports it, reads of the store begin and end, reports are lost or repeated, workers and API
// processes are killed. After every step the account counts each event once.
import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  type AskedUse,
  type LandedReport,
  type Reservation,
  type StoredSum,
  UsageLedger,
} from '../../../pipeline/domain/budgets/usage_ledger.ts';

const HOUR = 3_600_000;
const ORG = 'org_a';
const OTHER = 'org_b';
const LOG_BASE = 1000;
const PARTITIONS = 2;
const SCOPE = { from: 0, until: Infinity, agents: new Set(['a']) };

const amounts = (tokens: number) => ({
  tokens,
  storage_bytes: tokens,
  sandbox_micros: 0,
  cost_pico_usd: BigInt(tokens),
});

interface Event {
  use: AskedUse;
  /** JetStream sequence; null while the event is not in the log. */
  seq: number | null;
  /** Null once the API process knows the sequence, or is dead. */
  reservation: Reservation | null;
  landed: boolean;
  /** True when the event is recognised as a repeat, so that it lands nowhere. */
  repeated: boolean;
}

class World {
  readonly events: Event[] = [];
  ledger = new UsageLedger();
  #seq = 0;
  readonly #rows: { partition: number; log_seq: number; org_id: string; agent_id: string; tokens: number }[] = [];
  readonly #reports: LandedReport[] = [];
  #epoch = 1;
  readonly #told = new Map<number, number>();
  readonly #landed = new Map<number, number>();
  #snapshot: StoredSum[] | null = null;
  #reading = false;

  constructor() {
    this.startApi(0);
  }

  admit(tokens: number, partition: number, agent_id: string): void {
    const use: AskedUse = { ...amounts(tokens), agent_id, partition, hour: HOUR };
    this.events.push({ use, seq: null, reservation: this.ledger.reserve(ORG, [use]), landed: false, repeated: false });
  }

  /** The log stores an admitted event; the process learns that later. */
  publish(repeated: boolean): void {
    const event = this.events.find(({ seq, reservation }) => seq === null && reservation !== null);
    if (event === undefined) return;
    event.seq = ++this.#seq;
    event.repeated = repeated;
  }

  confirm(newest: boolean): void {
    const stored = this.events.filter(({ seq, reservation }) => seq !== null && reservation !== null);
    const event = newest ? stored.at(-1) : stored[0];
    event?.reservation?.confirm(new Map([[event.use.partition, event.seq ?? 0]]));
    if (event !== undefined) event.reservation = null;
  }

  /** The first step of a landing: usage is in the store, and the report has not been sent. */
  land(partition: number, most: number, others: boolean): void {
    const taken = this.events
      .filter(({ seq, landed, use }) => seq !== null && !landed && use.partition === partition)
      .sort((a, b) => (a.seq ?? 0) - (b.seq ?? 0))
      .slice(0, most);
    for (const event of taken) event.landed = true;
    const metered = taken.filter(({ repeated }) => !repeated);
    const through = others ? this.#landableBefore(partition) : (taken.at(-1)?.seq ?? this.#landed.get(partition) ?? 0);
    this.#landed.set(partition, Math.max(through, this.#landed.get(partition) ?? 0));
    const last = others ? (this.#landed.get(partition) ?? 0) : (metered.at(-1)?.seq ?? 0);
    if (metered.length === 0 && (!others || last === 0)) return;
    const log_seq = LOG_BASE + last;
    const mine = metered.map(({ use }) => ({
      partition,
      log_seq,
      org_id: ORG,
      agent_id: use.agent_id,
      tokens: use.tokens,
    }));
    const rows = others ? [...mine, { partition, log_seq, org_id: OTHER, agent_id: 'a', tokens: 1000 }] : mine;
    this.#rows.push(...rows);
    const after = this.#told.get(partition) ?? 0;
    this.#told.set(partition, log_seq);
    const reported = rows.map(({ org_id, agent_id, tokens }) => ({ ...amounts(tokens), org_id, agent_id, hour: HOUR }));
    this.#reports.push({
      partition,
      epoch: this.#epoch,
      landed_through: this.#landed.get(partition) ?? 0,
      after,
      log_seq,
      rows: reported,
    });
  }

  /** A message of another organization may precede the next one that has not landed. */
  #landableBefore(partition: number): number {
    const open = this.events.filter(({ seq, landed, use }) => seq !== null && !landed && use.partition === partition);
    return Math.min(this.#seq, ...open.map(({ seq }) => (seq ?? 0) - 1));
  }

  /** A report arrives, several times or never. */
  report(times: number): void {
    const report = this.#reports.shift();
    if (report === undefined) return;
    for (let time = 0; time < times; time++) this.ledger.landed(report);
  }

  /**
   * The worker repeats its progress, behind reports that have not arrived, as one connection
   * carries both.
   */
  progress(): void {
    for (let partition = 0; partition < PARTITIONS; partition++) {
      const after = this.#told.get(partition) ?? 0;
      const report = {
        partition,
        epoch: this.#epoch,
        landed_through: this.#landed.get(partition) ?? 0,
        after,
        log_seq: 0,
        rows: [],
      };
      this.#reports.push(report);
    }
  }

  /** The worker dies with its unsent reports; another one owns its partitions. */
  startWorker(): void {
    this.#epoch++;
    this.#told.clear();
    this.#reports.length = 0;
  }

  /**
   * The API process dies, and another one reads the log from the checkpoints on.
   * @param behind messages that a checkpoint lags behind
   */
  startApi(behind: number): void {
    this.ledger = new UsageLedger();
    this.#snapshot = null;
    this.#reading = false;
    for (const event of this.events) event.reservation = null;
    this.ledger.open(ORG, SCOPE);
    const through = this.#seq;
    this.ledger.beginBacklog(() => through);
    for (const { use, seq } of this.events) {
      if (seq !== null && seq > (this.#landed.get(use.partition) ?? 0) - behind)
        this.ledger.countLogged(ORG, [use], seq);
    }
  }

  beginRead(): void {
    this.ledger.beginRead(ORG);
    this.#reading = true;
    this.#snapshot = null;
  }

  /** The store answers with its rows of this instant. */
  query(): void {
    if (!this.#reading) return;
    const sums = new Map<string, StoredSum>();
    for (const { partition, log_seq, org_id, agent_id: agent, tokens } of this.#rows) {
      if (org_id !== ORG) continue;
      const agent_id = SCOPE.agents.has(agent) ? agent : '';
      const sum = sums.get(`${partition} ${agent_id}`);
      const all = tokens + (sum?.tokens ?? 0);
      sums.set(`${partition} ${agent_id}`, {
        ...amounts(all),
        partition,
        agent_id,
        log_seq: Math.max(log_seq, sum?.log_seq ?? 0),
      });
    }
    this.#snapshot = [...sums.values()];
  }

  endRead(): void {
    if (this.#snapshot === null) return;
    this.ledger.endRead(ORG, SCOPE, this.#snapshot, LOG_BASE);
    this.#snapshot = null;
    this.#reading = false;
  }

  /** Asserts that the account counts every event that was stored, or is about to be, once. */
  check(): void {
    if (!this.ledger.isSettled(ORG)) return;
    const counted = this.events.filter(
      ({ seq, reservation, repeated }) => (seq !== null || reservation !== null) && !repeated,
    );
    // The process cannot know what became of a reservation without a position, nor that an event is
    // a repeat.
    const unknowable = this.events.filter(
      ({ seq, reservation, landed, repeated }) => seq !== null && (repeated || (landed && reservation !== null)),
    );
    const least = counted.reduce((sum, { use }) => sum + use.tokens, 0);
    const most = unknowable.reduce((sum, { use }) => sum + use.tokens, least);
    const used = this.ledger.used(ORG).tokens;
    expect(used).toBeGreaterThanOrEqual(least);
    expect(used).toBeLessThanOrEqual(most);
    const ofAgent = (events: Event[]) =>
      events.reduce((sum, { use }) => sum + (use.agent_id === 'a' ? use.tokens : 0), 0);
    const agent = this.ledger.agentUsed(ORG, 'a').tokens;
    expect(agent).toBeGreaterThanOrEqual(ofAgent(counted));
    expect(agent).toBeLessThanOrEqual(ofAgent(counted) + ofAgent(unknowable));
  }

  /** Everything is published, confirmed, landed, reported and read. */
  end(): void {
    while (this.events.some(({ seq, reservation }) => seq === null && reservation !== null)) this.publish(false);
    while (this.events.some(({ reservation }) => reservation !== null)) this.confirm(false);
    for (let partition = 0; partition < PARTITIONS; partition++) this.land(partition, Infinity, false);
    this.progress();
    for (let report = this.#reports.length; report > 0; report--) this.report(1);
    this.beginRead();
    this.query();
    this.endRead();
    const stored = this.events.filter(({ seq, repeated }) => seq !== null && !repeated);
    expect(this.ledger.used(ORG).tokens).toBe(stored.reduce((sum, { use }) => sum + use.tokens, 0));
  }
}

const partition = fc.integer({ min: 0, max: PARTITIONS - 1 });
const step = fc.oneof(
  fc.tuple(fc.integer({ min: 1, max: 50 }), partition, fc.constantFrom('', 'a')).map((given) => (world: World) => {
    world.admit(...given);
  }),
  fc.boolean().map((repeated) => (world: World) => {
    world.publish(repeated && world.events.length % 3 === 0);
  }),
  fc.boolean().map((newest) => (world: World) => {
    world.confirm(newest);
  }),
  fc.tuple(partition, fc.integer({ min: 1, max: 4 }), fc.boolean()).map((given) => (world: World) => {
    world.land(...given);
  }),
  fc.integer({ min: 0, max: 2 }).map((times) => (world: World) => {
    world.report(times);
  }),
  fc.constantFrom(
    (world: World) => {
      world.progress();
    },
    (world: World) => {
      world.beginRead();
    },
    (world: World) => {
      world.query();
    },
    (world: World) => {
      world.query();
      world.endRead();
    },
    (world: World) => {
      world.endRead();
    },
  ),
  {
    weight: 4,
    arbitrary: fc.constant((world: World) => {
      world.report(1);
    }),
  },
  {
    weight: 1,
    arbitrary: fc.constant((world: World) => {
      world.startWorker();
    }),
  },
  {
    weight: 1,
    arbitrary: fc.integer({ min: 0, max: 3 }).map((behind) => (world: World) => {
      world.startApi(behind);
    }),
  },
);

test('in every interleaving of reservations, publishes, landings, reads, reports and restarts an account counts each event once', () => {
  fc.assert(
    fc.property(fc.array(step, { minLength: 5, maxLength: 80 }), (steps) => {
      const world = new World();
      for (const one of steps) {
        one(world);
        world.check();
      }
      world.end();
    }),
    { numRuns: 3000 },
  );
});
