// The route of the built-in prices: the price table that prices a call when neither its sender nor
// its organization gave a price.
import { z } from 'zod';
import { rateCard, type Rate, TABLE_NAME } from '../../../pipeline/domain/pricing/price_table.ts';
import { dateOf, dayOf } from '../../../pipeline/domain/time/days.ts';
import { defineRoute, listParam, type Route } from '../../http/route.ts';
import type { CostDeps } from './costs.ts';

/** Maximum models of one request. */
const MODELS_MAX = 100;
const MODEL_LENGTH_MAX = 256;
const FIRST_DAY = '1970-01-01';

const query = z.object({
  models: listParam(z.string().trim().min(1).max(MODEL_LENGTH_MAX))
    .pipe(z.array(z.string()).min(1).max(MODELS_MAX))
    .describe(`Names of models as requests have them, comma-separated, at most ${MODELS_MAX}`),
  date: z.iso
    .date()
    .refine((date) => date >= FIRST_DAY, { error: `must be a date from ${FIRST_DAY} on` })
    .optional()
    .describe('Day (UTC) of the prices; today when left out'),
});

const usdPerMtok = z.number().nullable();
const builtInPrices = z
  .object({
    table: z.string().describe('Name and version of the price table'),
    date: z.iso.date(),
    prices: z
      .array(
        z.object({
          model: z.string().describe('Name as it was asked for'),
          id: z.string().nullable().describe('Provider and model in the table; null if the table has no such model'),
          input_usd_per_mtok: usdPerMtok.describe('null if the table has no such price'),
          output_usd_per_mtok: usdPerMtok,
          cached_input_usd_per_mtok: usdPerMtok,
          tiered: z.boolean().describe('true if calls with a long input have other prices'),
        }),
      )
      .describe('In the order of models'),
  })
  .meta({ id: 'BuiltInPrices' });

/** Pico-USD in a USD. */
const PICO = 1e12;
const usd = (rate: Rate | null | undefined): number | null =>
  rate === null || rate === undefined ? null : Number(rate.base) / PICO;

function priceOf(model: string, at: number): z.infer<typeof builtInPrices>['prices'][number] {
  const card = rateCard(model, null, at);
  return {
    model,
    id: card?.id ?? null,
    input_usd_per_mtok: usd(card?.input),
    output_usd_per_mtok: usd(card?.output),
    cached_input_usd_per_mtok: usd(card?.cache_read),
    tiered: [card?.input, card?.output, card?.cache_read].some((rate) => (rate?.tiers.length ?? 0) > 0),
  };
}

export function getBuiltInPricesRoute({ now }: Pick<CostDeps, 'now'>): Route {
  return defineRoute({
    method: 'get',
    path: '/v1/cost/built-in-prices',
    operation_id: 'getBuiltInPrices',
    summary: 'Get built-in prices',
    description:
      'Returns the prices of models on a day in the price table of the service. They apply to calls without `attributes.cost_usd` whose model has no price of the organization. A name is looked up as that of a call without a provider.',
    tag: 'Costs',
    permission: 'costs:read',
    query,
    response: builtInPrices,
    handler: ({ query: { models, date } }) => {
      const at = date === undefined ? now() : Date.parse(date);
      return {
        data: { table: TABLE_NAME, date: dateOf(dayOf(at)), prices: models.map((model) => priceOf(model, at)) },
      };
    },
  });
}
