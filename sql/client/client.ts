// Client of ClickHouse: @clickhouse/client over HTTP, configured once for reads, statements and
// landings. Guarantees: every statement has a name (log_comment, metrics) and a timeout; reads are
// bounded in memory and end when the caller aborts; failures are classified as "the store is
// unavailable" or "the store refuses this".
import { createClient, type ClickHouseClient, type ClickHouseSettings } from '@clickhouse/client';
import { addAbortSignal, Readable } from 'node:stream';
import { finished } from 'node:stream/promises';
import type { StatementNice } from '../../ops/platform/clickhouse/statement_nice.ts';
import { sendAtOnce } from './at_once.ts';
import { Coordinators, type Reads, readsOfOne, serverOf } from './coordinators.ts';
import { explained } from './errors.ts';
import { CLUSTER_DDL, READ, readSettings } from './settings.ts';

export { classifyStoreError, isExhausted, isTooLarge, StoreUnavailable } from './errors.ts';

export interface ClickHouseOptions {
  /** http(s)://user:password@host:port/database; everything but reads goes there. */
  url: string;
  /**
   * Servers and database of reads, where there are several shards; absent for those of `url`. Reads begin at the
   * server `first`, or at any.
   */
  reads?: { urls: readonly string[]; database: string; first?: number };
  /** Called once for each statement that ended, with its duration in seconds. */
  observeQuery?: (name: string, seconds: number) => void;
  /** Nice values of threads of the embedded engine while they run a statement; absent, or 0, for that of its process. */
  statementNice?: StatementNice;
}

export interface Statement {
  /** Name in log_comment and metrics, from a closed set. */
  name: string;
  sql: string;
  params?: Record<string, unknown>;
  /** Timeout in milliseconds. */
  timeoutMs: number;
}

export interface BodyStatement extends Statement {
  /** Rows of an INSERT … FORMAT; buffers follow each other. */
  body?: string | Buffer | readonly Buffer[];
  query_id?: string;
  /** Settings in addition to those of every statement. */
  settings?: ClickHouseSettings;
  /** CPU priority among the statements of a client that has statementNice; `usual` if absent. */
  priority?: Priority;
}

/** CPU priority of a statement in the embedded engine. */
export type Priority = keyof StatementNice;

export interface Read extends Statement {
  /** Cancels the statement, for example when the client has disconnected. */
  signal?: AbortSignal | undefined;
  /** Maximum bytes of the result; a larger one fails, see isTooLarge. */
  bytesMax?: number | undefined;
  /** Maximum engine memory; READ_MEMORY_BYTES_MAX unless given. */
  memoryBytesMax?: number | undefined;
  /** Size of a set of IN up to which the engine skips granules by it; INDEXED_SET_MAX unless given. */
  indexedSetMax?: number | undefined;
}

const CONNECTIONS_MAX = 12;
/**
 * The client closes a connection that is silent for this long. A statement sends nothing before it
 * ends.
 */
const REQUEST_IDLE_MS = 120_000;
/**
 * Idle bound of statements that may take longer. Progress in headers would keep a connection
 * active, but then the status is 200 before the statement has ended, and its failure is lost.
 */
const LONG_REQUEST_IDLE_MS = 24 * 3_600_000;
sendAtOnce();

export class ClickHouse {
  readonly database: string;
  readonly #client: ClickHouseClient;
  readonly #reads: Reads;
  /**
   * Client for statements that take longer than REQUEST_IDLE_MS; created with the first of them.
   */
  #patient: ClickHouseClient | null = null;
  readonly #config: NonNullable<Parameters<typeof createClient>[0]>;
  readonly #observe: (name: string, seconds: number) => void;
  readonly #nice: StatementNice | undefined;

  constructor({ url, reads, observeQuery, statementNice }: ClickHouseOptions) {
    const { pathname } = new URL(url);
    this.database = pathname.slice(1) === '' ? 'millrace' : decodeURIComponent(pathname.slice(1));
    this.#observe = observeQuery ?? (() => undefined);
    this.#nice = statementNice;
    this.#config = {
      ...serverOf(url),
      database: this.database,
      application: 'millrace',
      max_open_connections: CONNECTIONS_MAX,
      request_timeout: REQUEST_IDLE_MS,
      compression: { request: false, response: false },
      keep_alive: { enabled: true, eagerly_destroy_stale_sockets: true },
      // Sends long lists of parameters in the body, because proxies truncate long URLs.
      use_multipart_params_auto: true,
      // Batches must be atomic, and be durable when the store answers.
      clickhouse_settings: {
        async_insert: 0,
        use_top_k_dynamic_filtering: 0,
        output_format_json_quote_64bit_integers: 1,
        date_time_output_format: 'iso',
        ...this.#niceSetting('usual'),
      },
      log: { level: 127 },
    };
    this.#client = createClient(this.#config);
    this.#reads =
      reads === undefined
        ? readsOfOne(this.#client)
        : new Coordinators(reads.urls, { ...this.#config, database: reads.database }, reads.first);
  }

  #niceSetting(priority: Priority): ClickHouseSettings {
    const nice = this.#nice?.[priority] ?? 0;
    return nice === 0 ? {} : { os_threads_nice_value_query: nice };
  }

  /** Address without credentials: http(s)://host:port */
  get origin(): string {
    return String(this.#config.url);
  }

  /**
   * Returns a value that another part of the service derives from the password of the service's
   * user. `from` must be irreversible; every process gets the same value.
   */
  derived(from: (password: string) => string): string {
    return from(this.#config.password ?? '');
  }

  /** Returns the rows of a SELECT as objects: UInt64 and Int64 as text, times in ISO 8601. */
  async rows<T>(read: Read): Promise<T[]> {
    const { name, sql, params, timeoutMs, signal } = read;
    return this.#timed(name, timeoutMs, signal, async (abort_signal) => {
      const result = await this.#reads.send((client, settings) =>
        client.query({
          query: sql,
          ...bound(params),
          format: 'JSONEachRow',
          abort_signal,
          clickhouse_settings: { ...readSettings(read), ...settings },
        }),
      );
      const found: T[] = [];
      for await (const rows of addAbortSignal(abort_signal, result.stream<T>()))
        for (const row of rows) found.push(row.json<T>());
      return found;
    });
  }

  /**
   * Returns the rows and the totals of a SELECT … WITH TOTALS, as `rows` returns them; the totals are
   * null for a statement that has none.
   */
  async rowsWithTotals<T>(read: Read): Promise<{ rows: T[]; totals: T | null }> {
    const { name, sql, params, timeoutMs, signal } = read;
    return this.#timed(name, timeoutMs, signal, async (abort_signal) => {
      const result = await this.#reads.send((client, settings) =>
        client.query({
          query: sql,
          ...bound(params),
          format: 'JSON',
          abort_signal,
          clickhouse_settings: { ...readSettings(read), ...settings },
        }),
      );
      // The client ignores the signal once an answer has begun.
      const stopped = Promise.withResolvers<never>();
      const stop = (): void => {
        result.close();
        stopped.reject(abort_signal.reason as Error);
      };
      if (abort_signal.aborted) stop();
      else abort_signal.addEventListener('abort', stop, { once: true });
      const { data, totals } = await Promise.race([result.json<T>(), stopped.promise]);
      abort_signal.removeEventListener('abort', stop);
      return { rows: data, totals: totals ?? null };
    });
  }

  /**
   * Yields the rows of a SELECT in arrays as they arrive, without collecting them. A statement that
   * fails midway throws midway, so an end without an error is the end of the rows. A consumer that
   * stops early cancels the statement. The read times out when the store sends nothing for
   * timeoutMs; the consumer's own time does not count.
   */
  async *stream<T>(read: Read): AsyncGenerator<T[]> {
    const { name, sql, params, timeoutMs, signal } = read;
    const began = performance.now();
    const silent = new AbortController();
    const stop = new AbortController();
    const abort_signal = AbortSignal.any([silent.signal, stop.signal, ...(signal === undefined ? [] : [signal])]);
    const wait = () =>
      setTimeout(() => {
        silent.abort();
      }, timeoutMs);
    let waiting = wait();
    try {
      const result = await this.#reads.send((client, settings) =>
        client.query({
          query: sql,
          ...bound(params),
          format: 'JSONEachRow',
          abort_signal,
          clickhouse_settings: { ...readSettings(read), ...settings },
        }),
      );
      // The client ignores the signal once an answer has begun, so the stream gets the signal too,
      // here and below.
      for await (const rows of addAbortSignal(abort_signal, result.stream<T>())) {
        clearTimeout(waiting);
        yield rows.map((row) => row.json<T>());
        waiting = wait();
      }
    } catch (error) {
      throw explained(error, name, silent.signal, timeoutMs, signal);
    } finally {
      clearTimeout(waiting);
      stop.abort();
      this.#observe(name, (performance.now() - began) / 1000);
    }
  }

  /**
   * Calls `take` with whole records of fixed width of a SELECT … FORMAT RowBinary as they arrive,
   * without collecting them. The read times out when nothing arrives for timeoutMs; its total
   * duration is unbounded.
   */
  async records(
    { name, sql, params, timeoutMs, signal }: Read,
    recordBytes: number,
    take: (records: Buffer) => void,
  ): Promise<void> {
    await this.#timed(name, timeoutMs, signal, async (abort_signal, heard) => {
      const stream = await this.#raw(name, sql, params, abort_signal);
      addAbortSignal(abort_signal, stream);
      let rest: Buffer = Buffer.alloc(0);
      for await (const chunk of stream) {
        heard();
        const bytes = rest.length === 0 ? (chunk as Buffer) : Buffer.concat([rest, chunk as Buffer]);
        const whole = bytes.length - (bytes.length % recordBytes);
        take(bytes.subarray(0, whole));
        rest = bytes.subarray(whole);
      }
    });
  }

  /**
   * Yields the bytes of a SELECT … FORMAT … as they arrive. A statement that fails after its first
   * bytes may only cut them off, so the reader must detect the end by the format.
   */
  async *bytes({ name, sql, params, timeoutMs, signal }: Read): AsyncGenerator<Buffer> {
    const began = performance.now();
    const timeout = AbortSignal.timeout(timeoutMs);
    const stop = new AbortController();
    const abort_signal = AbortSignal.any([timeout, stop.signal, ...(signal === undefined ? [] : [signal])]);
    try {
      const stream = await this.#raw(name, sql, params, abort_signal);
      for await (const chunk of addAbortSignal(abort_signal, stream)) yield chunk as Buffer;
    } catch (error) {
      throw explained(error, name, timeout, timeoutMs, signal);
    } finally {
      stop.abort();
      this.#observe(name, (performance.now() - began) / 1000);
    }
  }

  /**
   * Runs a statement, with rows to insert if it takes any, and returns the number of rows that it
   * wrote.
   */
  async execute({
    name,
    sql,
    params,
    body,
    query_id,
    timeoutMs,
    settings,
    priority = 'usual',
  }: BodyStatement): Promise<{ written_rows: number }> {
    const client = this.#clientFor(timeoutMs);
    return this.#timed(name, timeoutMs, undefined, async (abort_signal) => {
      const common = {
        query: sql,
        ...bound(params),
        ...(query_id === undefined ? {} : { query_id }),
        abort_signal,
        clickhouse_settings: {
          log_comment: name,
          wait_end_of_query: 1 as const,
          // Half of a surrogate pair is kept as written, instead of failing the whole insert.
          input_format_json_throw_on_bad_escape_sequence: 0 as const,
          ...(priority === 'usual' ? {} : this.#niceSetting(priority)),
          ...settings,
        },
      };
      if (body === undefined) {
        const { summary } = await client.command(common);
        return { written_rows: Number(summary?.written_rows ?? 0) };
      }
      const { stream, summary } = await client.exec({
        ...common,
        values: Readable.from(Array.isArray(body) ? body : [body], { objectMode: false }),
      });
      await finished(stream.resume());
      return { written_rows: Number(summary?.written_rows ?? 0) };
    });
  }

  /** Returns the bytes of the answer to a read whose statement names its format. */
  async #raw(name: string, sql: string, params: Read['params'], abort_signal: AbortSignal) {
    const { stream } = await this.#reads.send((client, settings) =>
      client.exec({
        query: sql,
        ...bound(params),
        abort_signal,
        clickhouse_settings: { log_comment: name, ...READ, ...settings },
      }),
    );
    return stream;
  }

  #clientFor(timeoutMs: number): ClickHouseClient {
    if (timeoutMs <= REQUEST_IDLE_MS) return this.#client;
    this.#patient ??= createClient({ ...this.#config, request_timeout: LONG_REQUEST_IDLE_MS });
    return this.#patient;
  }

  /**
   * Creates the database when it is missing. On a cluster the database is Replicated, so that its
   * DDL spreads to every replica: of the shard alone where there are several.
   */
  async createDatabase(cluster?: string, isShard = false): Promise<void> {
    const place = `/clickhouse/databases/${this.database}${isShard ? '/{shard}' : ''}`;
    const engine =
      cluster === undefined ? '' : ` ON CLUSTER '${cluster}' ENGINE = Replicated('${place}', '{shard}', '{replica}')`;
    const maker = createClient({ ...this.#config, database: 'system' });
    try {
      await maker.command({
        query: `CREATE DATABASE IF NOT EXISTS {name:Identifier}${engine}`,
        query_params: { name: this.database },
        clickhouse_settings: cluster === undefined ? {} : CLUSTER_DDL,
      });
    } finally {
      await maker.close();
    }
  }

  /** Returns true when the store answers. */
  async ping(): Promise<boolean> {
    return this.#reads.ping();
  }

  async close(): Promise<void> {
    await Promise.all([this.#reads.close(), this.#client.close(), this.#patient?.close()]);
  }

  /** @param run must end on the signal that it gets; each call of `heard` restarts the timeout */
  async #timed<T>(
    name: string,
    timeoutMs: number,
    signal: AbortSignal | undefined,
    run: (signal: AbortSignal, heard: () => void) => Promise<T>,
  ): Promise<T> {
    const began = performance.now();
    const timeout = new AbortController();
    const timer = setTimeout(() => {
      timeout.abort();
    }, timeoutMs);
    try {
      const heard = (): void => void timer.refresh();
      return await run(signal === undefined ? timeout.signal : AbortSignal.any([signal, timeout.signal]), heard);
    } catch (error) {
      throw explained(error, name, timeout.signal, timeoutMs, signal);
    } finally {
      clearTimeout(timer);
      this.#observe(name, (performance.now() - began) / 1000);
    }
  }
}

function bound(params: Record<string, unknown> | undefined): { query_params?: Record<string, unknown> } {
  return params === undefined ? {} : { query_params: params };
}

export function createClickHouse(options: ClickHouseOptions): ClickHouse {
  return new ClickHouse(options);
}
