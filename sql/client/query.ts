// Typed reads: a file of sql/queries bound to the shapes of its parameters and rows.
// In: parameters. Out: checked rows. The name goes into log_comment and metrics; every read is bounded in time and memory.
import { z } from 'zod';
import type { ClickHouse } from './client.ts';
import { readTemplate, renderTemplate, type TemplateParams } from './template.ts';

export interface QueryDefinition<P extends z.ZodType<TemplateParams, TemplateParams>, R extends z.ZodType> {
  /** Closed set: shown in log_comment and metrics. */
  name: string;
  /** Path under sql/queries; see template.ts for its marks. */
  file: string;
  params: P;
  row: R;
  /** Milliseconds; READ_TIMEOUT_MS unless given. */
  timeoutMs?: number;
}

export interface QueryOptions {
  signal?: AbortSignal | undefined;
  /** An answer beyond this many bytes fails, see isTooLarge. */
  bytesMax?: number | undefined;
}

/** A bound query. Both forms reject with StoreUnavailable, or with the error of the store; a row of another shape is a bug and throws. */
export interface Query<P, R> {
  (client: ClickHouse, params: P, options?: QueryOptions): Promise<R[]>;
  readonly queryName: string;
  /** The rows as they come, for answers that must not be held. */
  stream(client: ClickHouse, params: P, options?: QueryOptions): AsyncGenerator<R[]>;
}

/** A read that takes longer is given up: whoever asked has gone by then. */
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
