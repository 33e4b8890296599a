// Heartbeats of pipeline workers, which every process hears. They are not stored: two writes a
// second for each worker would be most of what an idle service writes to disk, and a heartbeat
// older than two seconds says nothing.
import { z } from 'zod';

export const HEARTBEAT_SUBJECT = 'workers.beat';

/** Subject at which a worker listens as long as it is connected. */
export const presenceSubject = (worker_id: string): string => `workers.present.${worker_id}`;

export const heartbeatShape = z.object({
  worker_id: z.string(),
  /** URL of the worker's own metrics. */
  metrics_url: z.string(),
  /** True in the last heartbeat of a worker that shuts down in order. */
  ended: z.boolean(),
  /**
   * True once all parts of the worker have started and it takes job calls. Workers of an older
   * version leave it out.
   */
  up: z.boolean().optional(),
  /** True if the worker listens at its presenceSubject. Workers of an older version leave it out. */
  present: z.boolean().optional(),
  /**
   * True if the worker keeps its partitions when others join or leave, as far as an even division lets
   * it. Workers of an older version leave it out.
   */
  sticky: z.boolean().optional(),
});
export type Heartbeat = z.infer<typeof heartbeatShape>;
