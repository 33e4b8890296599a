// An org's own prices of models, as stored in KV by org and as answered. Written by the API, read by the pipeline for every
// event that comes in. In: the text of a value, or a request. Out: prices within bounds, no two of them for the same days.
import { z } from 'zod';

const PRICES_MAX = 1000;
const MODEL_LENGTH_MAX = 256;
const USD_PER_MTOK_MAX = 1_000_000;
/** Further digits would be rounded where a price is used: 1e-12 USD is the unit of all money. */
const DECIMALS_MAX = 12;
const FIRST_DAY = '1970-01-01';

const usdPerMtok = z
  .number()
  .min(0)
  .max(USD_PER_MTOK_MAX)
  .refine((usd) => Number(usd.toFixed(DECIMALS_MAX)) === usd, {
    error: `takes at most ${String(DECIMALS_MAX)} decimals`,
  });

const orgPrice = z.object({
  model: z.string().trim().min(1).max(MODEL_LENGTH_MAX).describe('Name as requests have it, whatever the case'),
  input_usd_per_mtok: usdPerMtok.describe('USD per million input tokens'),
  output_usd_per_mtok: usdPerMtok.describe('USD per million output tokens'),
  cached_input_usd_per_mtok: usdPerMtok
    .optional()
    .describe('USD per million input tokens that the provider had cached; the input price where it is left out'),
  from: z.iso
    .date()
    .refine((date) => date >= FIRST_DAY, { error: `takes a date from ${FIRST_DAY} on` })
    .optional()
    .describe('First day (UTC) of calls that cost this; left out: since ever. Of several the latest one holds'),
});

/** What is asked for and answered. */
export const prices = z
  .object({ prices: z.array(orgPrice).max(PRICES_MAX) })
  .superRefine(({ prices: list }, ctx) => {
    const seen = new Set<string>();
    for (const [index, { model, from }] of list.entries()) {
      const key = JSON.stringify([model.toLowerCase(), from ?? null]);
      if (seen.has(key))
        ctx.addIssue({
          code: 'custom',
          path: ['prices', index, 'model'],
          message: 'has another price from the same day on',
        });
      seen.add(key);
    }
  })
  .meta({ id: 'Prices' });
export type Prices = z.infer<typeof prices>;

/** What holds for an org that has set nothing. */
export const NO_PRICES: Prices = Object.freeze({ prices: [] });

/** @throws ZodError when the text is no such record; SyntaxError when it is no JSON */
export function parsePrices(text: string): Prices {
  return prices.parse(JSON.parse(text));
}
