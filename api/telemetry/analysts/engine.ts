// Sends queries to the engine as the user of analysts, for one organization. Every request is built
// from scratch: no header of the analyst's request is forwarded, so only the service decides for
// which organization it is.
import http, { type IncomingMessage } from 'node:http';
import https from 'node:https';
import { randomUUID } from 'node:crypto';
import { text as readText } from 'node:stream/consumers';
import { hex16 } from '../../../pipeline/domain/traces/ids.ts';
import type { ClickHouse } from '../../../sql/client/client.ts';
import { allDatabaseOf } from '../../../sql/client/distributed.ts';
import {
  ORG_ANALYST,
  ORG_HEADER,
  orgAnalystPassword,
  orgDatabaseOf,
  orgQueryId,
} from '../../../sql/analysts/org_views.ts';
import { CONNECTIONS_MAX } from './running.ts';

/** Every query that the engine runs for an organization has this in its id, whichever process began it. */
export const orgMark = (org_id: string): string => hex16(org_id);

/** Maximum bytes of a parser's answer. That of a query of 128 KiB is far smaller. */
const AST_BYTES_MAX = 8 * 1024 * 1024;

export interface EngineQuestion {
  /** null for no organization: no row is visible then. */
  org_id: string | null;
  /** Part of the query's id in the engine, so that the operator sees whose query it is. */
  user: string;
  query: string;
  params?: URLSearchParams;
  /** Encodings that the client accepts. */
  acceptEncoding?: string | undefined;
  signal: AbortSignal;
}

/** A short answer, read to its end. */
export interface EngineText {
  status: number;
  /** Code of the exception, or null. */
  code: number | null;
  format: string | null;
  text: string;
}

export class AnalystEngine {
  readonly database: string;
  readonly #origin: URL;
  readonly #password: string;
  readonly #agent: http.Agent;

  /** @param isSharded true to read the views over all shards */
  constructor(clickhouse: ClickHouse, isSharded = false) {
    const database = orgDatabaseOf(clickhouse.database);
    this.database = isSharded ? allDatabaseOf(database) : database;
    this.#origin = new URL(clickhouse.origin);
    this.#password = clickhouse.derived(orgAnalystPassword);
    const options = { keepAlive: true, maxSockets: CONNECTIONS_MAX, timeout: 5000 };
    this.#agent = this.#origin.protocol === 'https:' ? new https.Agent(options) : new http.Agent(options);
  }

  /**
   * Resolves with the headers of the answer, whatever its status. Aborting the signal ends the
   * query. @throws Error when the engine is unavailable
   */
  ask({ org_id, user, query, params, acceptEncoding, signal }: EngineQuestion): Promise<IncomingMessage> {
    const url = new URL('/', this.#origin);
    url.search = String(params ?? new URLSearchParams({ database: this.database }));
    const mark = org_id === null ? 'none' : orgMark(org_id);
    url.searchParams.set('query_id', orgQueryId(org_id, `${user}-${mark}-${randomUUID()}`));
    const request = this.#origin.protocol === 'https:' ? https.request : http.request;
    return new Promise((resolve, reject) => {
      const req = request(url, {
        method: 'POST',
        agent: this.#agent,
        signal,
        headers: {
          'X-ClickHouse-User': ORG_ANALYST,
          'X-ClickHouse-Key': this.#password,
          'Content-Type': 'text/plain; charset=utf-8',
          // For the row policies of an older version, which a server may still have.
          ...(org_id === null ? {} : { [ORG_HEADER]: org_id }),
          ...(acceptEncoding === undefined ? {} : { 'Accept-Encoding': acceptEncoding }),
        },
      });
      req.on('response', resolve).on('error', reject);
      req.end(query);
    });
  }

  /** Resolves with the whole answer. */
  async read(question: EngineQuestion): Promise<EngineText> {
    const res = await this.ask(question);
    let bytes = 0;
    res.on('data', (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes > AST_BYTES_MAX) res.destroy(new Error(`the engine's answer is larger than ${AST_BYTES_MAX} bytes`));
    });
    const text = await readText(res);
    const code = Number(headerOf(res, 'x-clickhouse-exception-code') ?? 0);
    return {
      status: res.statusCode ?? 0,
      code: code === 0 ? null : code,
      format: headerOf(res, 'x-clickhouse-format'),
      text,
    };
  }

  close(): void {
    this.#agent.destroy();
  }
}

const headerOf = (res: IncomingMessage, name: string): string | null => {
  const value = res.headers[name];
  return typeof value === 'string' ? value : null;
};
