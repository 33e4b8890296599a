// Request and response shapes of sampling.
import { z } from 'zod';
import { timeParam } from '../../http/time_param.ts';

export const samplingQuery = z
  .object({
    since: timeParam.optional().describe('Counts events that began at or after this time. Defaults to 30 days ago'),
    until: timeParam.optional().describe('Counts events that began before this time. No bound if left out'),
  })
  .strip();
export type SamplingQuery = z.output<typeof samplingQuery>;

export const sampling = z
  .object({
    profile: z.enum(['full', 'balanced', 'aggressive']),
    enabled: z.boolean().describe('false keeps everything, whatever the profile'),
    rate: z.number().describe('Fraction of the events matched by no keep rule that is kept now, 0 to 1'),
    rates: z
      .object({ full: z.number(), balanced: z.number(), aggressive: z.number() })
      .describe('That fraction by profile'),
    slow_ms: z.int().describe('Events that last longer are always kept, milliseconds'),
    tail: z.boolean().describe('Whether sampling decides when a trace is complete, over all of its spans'),
    buffer: z
      .object({ slots: z.int().describe('Maximum traces that a worker buffers') })
      .describe('Buffer of tail sampling. When it is full, the oldest trace is decided with the spans that it has'),
    kept: z.int().describe('Events stored in full'),
    summarised: z
      .int()
      .describe('Events stored as a summary: numbers and names, without prompt, response and attributes'),
    traces: z.object({
      kept: z.int().describe('Traces with at least one event stored in full'),
      summarised: z.int().describe('Traces stored as summaries only'),
    }),
    since: z.iso.datetime().describe('Start of the counted period, by the beginning of events'),
  })
  .meta({ id: 'Sampling' });
export type Sampling = z.infer<typeof sampling>;
