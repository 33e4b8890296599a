// An organization's own prices of models, as stored in KV and as answered. The API writes them; the
// pipeline reads them for every event. Parsed prices are within bounds, and no two of a model begin
// on the same day.
import { z } from 'zod';

const PRICES_MAX = 1000;
const MODEL_LENGTH_MAX = 256;
const USD_PER_MTOK_MAX = 1_000_000;
/**
 * Maximum number of decimals of a price: more would be rounded in use, as 1e-12 USD is the unit of
 * all money.
 */
const DECIMALS_MAX = 12;
const FIRST_DAY = '1970-01-01';

const usdPerMtok = z
  .number()
  .min(0)
  .max(USD_PER_MTOK_MAX)
  .refine((usd) => Number(usd.toFixed(DECIMALS_MAX)) === usd, {
    error: `must have at most ${DECIMALS_MAX} decimals`,
  });

const orgPrice = z.object({
  model: z.string().trim().min(1).max(MODEL_LENGTH_MAX).describe('Name of the model as requests have it, in any case'),
  input_usd_per_mtok: usdPerMtok.describe('USD per million input tokens'),
  output_usd_per_mtok: usdPerMtok.describe('USD per million output tokens'),
  cached_input_usd_per_mtok: usdPerMtok
    .optional()
    .describe('USD per million input tokens that the provider had cached; the input price when left out'),
  from: z.iso
    .date()
    .refine((date) => date >= FIRST_DAY, { error: `must be a date from ${FIRST_DAY} on` })
    .optional()
    .describe(
      'First day (UTC) of the calls that this price applies to; without it, all days. Of several prices the latest applies',
    ),
  until: z.iso
    .date()
    .optional()
    .describe(
      'First day (UTC) of the calls that this price no longer applies to; without it, it has no end. An earlier price of the organization applies then, or the built-in one',
    ),
});

/** Body of requests and answers. */
export const prices = z
  .object({ prices: z.array(orgPrice).max(PRICES_MAX) })
  .superRefine(({ prices: list }, ctx) => {
    const seen = new Set<string>();
    for (const [index, { model, from, until }] of list.entries()) {
      const key = JSON.stringify([model.toLowerCase(), from ?? null]);
      if (seen.has(key))
        ctx.addIssue({
          code: 'custom',
          path: ['prices', index, 'model'],
          message: 'has another price from the same day on',
        });
      seen.add(key);
      if (until !== undefined && until <= (from ?? FIRST_DAY))
        ctx.addIssue({ code: 'custom', path: ['prices', index, 'until'], message: 'must be a day after from' });
    }
  })
  .meta({ id: 'Prices' });
export type Prices = z.infer<typeof prices>;

/** Prices of an organization that has set none. */
export const NO_PRICES: Prices = Object.freeze({ prices: [] });

/**
 * Parses a stored record.
 * @throws ZodError or SyntaxError when the text is not such a record
 */
export function parsePrices(text: string): Prices {
  return prices.parse(JSON.parse(text));
}
