// The reads that scores waiting for their traces need.
import { z } from 'zod';
import { defineQuery } from '../client/query.ts';

const millis = z.coerce.number().pipe(z.int());
const names = z.array(z.string());

/** Traces that have arrived, with the start of their first span. */
export const readArrived = defineQuery({
  name: 'arrived_traces',
  file: 'user_scores/arrived.sql',
  params: z.object({ org_ids: names, trace_ids: names }),
  row: z.object({ org_id: z.string(), trace_id: z.string(), from_ms: millis }),
});

/** Scores that have landed. */
export const readLandedScores = defineQuery({
  name: 'landed_scores',
  file: 'user_scores/landed.sql',
  params: z.object({ org_ids: names, trace_ids: names, score_ids: names }),
  row: z.object({ score_id: z.string(), created_ms: millis }),
});
