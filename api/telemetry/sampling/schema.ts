// Shapes of GET /v1/sampling: what it takes, and what it answers.
import { z } from 'zod';
import { timeParam } from '../../http/time_param.ts';

export const samplingQuery = z
  .object({
    since: timeParam.optional().describe('Counts what began then or later; 30 days ago unless given'),
    until: timeParam.optional().describe('Counts what began before then; everything unless given'),
  })
  .strip();
export type SamplingQuery = z.output<typeof samplingQuery>;

export const sampling = z
  .object({
    profile: z.enum(['full', 'balanced', 'aggressive']),
    enabled: z.boolean().describe('false keeps everything, whatever the profile'),
    rate: z.number().describe('Part of what no keep rule holds that is kept now, 0 to 1'),
    rates: z
      .object({ full: z.number(), balanced: z.number(), aggressive: z.number() })
      .describe('That part by profile'),
    slow_ms: z.int().describe('What lasts longer is kept'),
    tail: z.boolean().describe('Whether traces are decided when they are complete, over all of their spans'),
    buffer: z
      .object({ slots: z.int().describe('Traces that a worker holds') })
      .describe('Of tail sampling. Where it is full, the oldest trace is decided as it stands'),
    kept: z.int().describe('Events stored in full'),
    summarised: z
      .int()
      .describe('Events stored as a summary: numbers and names, without prompt, response and attributes'),
    traces: z.object({
      kept: z.int().describe('Traces with an event stored in full'),
      summarised: z.int().describe('Traces of which only summaries are stored'),
    }),
    since: z.iso.datetime().describe('Counted from then on, by when they began'),
  })
  .meta({ id: 'Sampling' });
export type Sampling = z.infer<typeof sampling>;
