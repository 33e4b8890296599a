// Typed reads: a file of sql/queries bound to the shapes of its parameters and rows. Takes
// parameters and returns checked rows. The name of a query goes into log_comment and metrics; every
// read is bounded in time and memory.
import { z } from 'zod';
import type { ClickHouse } from './client.ts';
import { readTemplate, renderTemplate, type TemplateParams } from './template.ts';

export interface QueryDefinition<P extends z.ZodType<TemplateParams, TemplateParams>, R extends z.ZodType> {
  /** Name in log_comment and metrics, from a closed set. */
  name: string;
  /** Path below sql/queries. template.ts describes the marks of a file. */
  file: string;
  params: P;
  row: R;
  /** Timeout in milliseconds; READ_TIMEOUT_MS unless given. */
  timeoutMs?: number;
}

export interface QueryOptions {
  signal?: AbortSignal | undefined;
  /** Maximum bytes of the result; a larger one fails, see isTooLarge. */
  bytesMax?: number | undefined;
  /** Maximum engine memory, bytes. */
  memoryBytesMax?: number | undefined;
  /** Size of a set of IN up to which the engine skips granules by it; INDEXED_SET_MAX unless given. */
  indexedSetMax?: number | undefined;
}

/**
 * Query bound to its file. Both forms reject with StoreUnavailable or with the error of the store,
 * and throw on a row of another shape, which is a bug.
 */
export interface Query<P, R> {
  (client: ClickHouse, params: P, options?: QueryOptions): Promise<R[]>;
  readonly queryName: string;
  /** Yields the rows as they arrive, for results too large to keep in memory. */
  stream(client: ClickHouse, params: P, options?: QueryOptions): AsyncGenerator<R[]>;
}

/** Default timeout of a read. */
export const READ_TIMEOUT_MS = 15_000;

export function defineQuery<P extends z.ZodType<TemplateParams, TemplateParams>, R extends z.ZodType>(
  definition: QueryDefinition<P, R>,
): Query<z.input<P>, z.output<R>> {
  const { name, file, params: shape, row, timeoutMs = READ_TIMEOUT_MS } = definition;
  const template = readTemplate(file);
  const rows = z.array(row);
  const read = (params: z.input<P>, options: QueryOptions | undefined) => ({
    name,
    timeoutMs,
    ...options,
    ...renderTemplate(template, shape.parse(params)),
  });
  const query = async (client: ClickHouse, params: z.input<P>, options?: QueryOptions) =>
    rows.parse(await client.rows(read(params, options)));
  async function* stream(
    client: ClickHouse,
    params: z.input<P>,
    options?: QueryOptions,
  ): AsyncGenerator<z.output<R>[]> {
    for await (const block of client.stream(read(params, options))) yield rows.parse(block);
  }
  return Object.assign(query, { queryName: name, stream });
}
