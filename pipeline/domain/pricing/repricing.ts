// Computes the cost of a stored call by current prices. In: a span's columns, and the attributes
// with its counts. Out: cost and price as decode would compute them today, or null when the counts
// are no longer known. Pure.
import type { SourceFormat } from '../../../schemas/codec.ts';
import { openAiUsage } from '../decode/chatcompletion.ts';
import { customUsage, firstString } from '../decode/custom.ts';
import type { Fields, ReportedUsage } from '../decode/draft.ts';
import { NO_USAGE } from '../decode/draft.ts';
import { anthropicUsage } from '../decode/messages.ts';
import { OTLP_COUNTING, otlpAnsweredModel, otlpProvider, otlpUsage } from '../decode/otlp_kind.ts';
import { createPriceBook, type PriceBook, type Priced, type PricedUsage } from './pricing.ts';
import type { SpanPrice } from '../traces/span.ts';

/** A priced span as stored. */
export interface StoredCall {
  org_id: string;
  source_format: SourceFormat;
  model: string;
  /** Start of the call, milliseconds. */
  started_at: number;
  input_tokens: number;
  output_tokens: number;
  cached_input_tokens: number;
  cost_pico_usd: bigint;
  price: SpanPrice;
  /** False when sampling dropped the attributes. */
  sampled: boolean;
  /** The attributes named by COUNTING_ATTRIBUTES and COUNTING_PREFIX. */
  attributes: Fields;
}

const USAGE_PREFIX = 'gen_ai.usage.';
/**
 * Attributes, besides gen_ai.usage.*, that may contain a call's counts, provider and answered
 * model.
 */
export const COUNTING_ATTRIBUTES = [
  'usage',
  'prompt_tokens',
  'prompt_tokens_details',
  'prompt_cache_hit_tokens',
  'completion_tokens',
  'completion_tokens_details',
  'input_tokens',
  'output_tokens',
  'cached_input_tokens',
  'cache_read_input_tokens',
  'cache_creation_input_tokens',
  'cache_creation',
  'provider',
  'gen_ai.provider.name',
  'gen_ai.system',
  'gen_ai.response.model',
  'capture',
  ...OTLP_COUNTING,
] as const;
export const COUNTING_PREFIX = USAGE_PREFIX;

/**
 * Returns cost and price of a stored call by a price book; null when sampling dropped what the cost
 * depends on, so that its price times its tokens is not its cost.
 */
export function repriced(prices: PriceBook, call: StoredCall): Priced | null {
  const { org_id, model, started_at: at, input_tokens, output_tokens } = call;
  // The gateway stores no counts in the attributes of calls whose content it does not capture.
  if ((!call.sampled || call.attributes['capture'] === 'usage') && !isExplained(call)) return null;
  const found = call.sampled ? countsOf(call) : NO_USAGE;
  const usage: PricedUsage = {
    ...found,
    input_tokens,
    output_tokens,
    cached_input_tokens: Math.max(call.cached_input_tokens, found.cached_input_tokens),
  };
  const { provider, answered } = namesOf(call);
  const models = answered === '' || answered === model ? [model] : [model, answered];
  return prices.price({ org_id, models, provider, at, usage });
}

/** Returns true when the call is stored with another cost or price. */
export function differs({ cost_pico_usd, price }: Pick<StoredCall, 'cost_pico_usd' | 'price'>, now: Priced): boolean {
  return (
    cost_pico_usd !== now.cost_pico_usd ||
    cardOf(price.source) !== cardOf(now.price.source) ||
    price.input_usd_per_mtok !== now.price.input_usd_per_mtok ||
    price.output_usd_per_mtok !== now.price.output_usd_per_mtok ||
    price.cached_input_usd_per_mtok !== now.price.cached_input_usd_per_mtok
  );
}

/**
 * Returns a price source without the table's version: another version with the same prices corrects
 * nothing.
 */
function cardOf(source: string): string {
  const at = source.indexOf('@');
  const colon = at < 0 ? -1 : source.indexOf(':', at);
  return colon < 0 ? source : source.slice(0, at) + source.slice(colon);
}

/** Returns the counts that the format's decoder found, read back from where it put them. */
function countsOf({ source_format, attributes }: StoredCall): ReportedUsage {
  if (source_format === 'custom') return customUsage(attributes);
  if (source_format === 'otlp') return otlpUsage(attributes);
  const usage: Record<string, unknown> = {};
  for (const key in attributes)
    if (key.startsWith(USAGE_PREFIX)) usage[key.slice(USAGE_PREFIX.length)] = attributes[key];
  return source_format === 'messages' ? anthropicUsage(usage) : openAiUsage(usage);
}

const PROVIDERS: Partial<Record<SourceFormat, string>> = { chatcompletion: 'openai', messages: 'anthropic' };

/**
 * Returns the provider to look up first and the answering model; without attributes, as the stored
 * price names them.
 */
function namesOf({ source_format, sampled, attributes, price }: StoredCall): {
  provider: string | null;
  answered: string;
} {
  const provider = PROVIDERS[source_format] ?? null;
  if (!sampled) {
    const [, named = '', answered = ''] = /^[^:@]+@[^:]*:([^/]+)\/(.+)$/.exec(price.source) ?? [];
    return { provider: provider ?? (named === '' ? null : named), answered };
  }
  if (source_format === 'otlp') return { provider: otlpProvider(attributes), answered: otlpAnsweredModel(attributes) };
  const answered = attributes['gen_ai.response.model'];
  if (source_format !== 'custom') return { provider, answered: typeof answered === 'string' ? answered : '' };
  return {
    provider: firstString(attributes, ['provider', 'gen_ai.provider.name', 'gen_ai.system']) || null,
    answered: firstString(attributes, ['gen_ai.response.model']),
  };
}

/**
 * Returns true when the columns alone explain the cost, so that no count from the attributes
 * entered it.
 */
function isExplained(call: StoredCall): boolean {
  const {
    input_usd_per_mtok: input,
    output_usd_per_mtok: output,
    cached_input_usd_per_mtok: cached,
    source,
  } = call.price;
  // A call without a price cost nothing, whatever its counts.
  if (source === 'missing') return true;
  const own = createPriceBook(() => [
    {
      model: call.model,
      input_usd_per_mtok: input ?? 0,
      output_usd_per_mtok: output ?? 0,
      ...(cached === null ? {} : { cached_input_usd_per_mtok: cached }),
    },
  ]);
  const { input_tokens, output_tokens, cached_input_tokens } = call;
  const usage = { ...NO_USAGE, input_tokens, output_tokens, cached_input_tokens };
  return (
    own.price({ org_id: call.org_id, models: [call.model], provider: null, at: call.started_at, usage })
      .cost_pico_usd === call.cost_pico_usd
  );
}
