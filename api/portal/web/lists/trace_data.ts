// The records of the trace list as the API returns them.
import type { Answer } from '../client/api.ts';

export type TraceItem = Answer<'/v1/traces'>['data'][number];

/** Returns the name of a trace; one whose root has not arrived has its id. */
export const nameOf = (trace: { root_span_name: string | null; trace_id: string }): string =>
  trace.root_span_name === null || trace.root_span_name === '' ? trace.trace_id : trace.root_span_name;
