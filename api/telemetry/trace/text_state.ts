// Tells why the texts of spans are not in the store. Takes what their rows say, and reads cold
// storage only for spans that had texts.
import { hasSpanFlag } from '../../../pipeline/domain/traces/span_flags.ts';
import type { ClickHouse } from '../../../sql/client/client.ts';
import type { TextState } from './schema.ts';
import { readColdDays } from './store.ts';

/** A span, as far as its texts are concerned. */
export interface TextFacts {
  /** ISO 8601. */
  started_at: string;
  sampled: boolean;
  /** True if the store has its texts. */
  here: boolean;
  /** Bits of SPAN_FLAGS. */
  flags: number;
  /** True if it was probably sent with texts; decides for spans that landed before flags were recorded. */
  assumed: boolean;
}

export interface TextWhereabouts {
  state: TextState;
  /** Day on which the texts moved to cold storage. */
  left_on: string | null;
}

/** Returns true if a span was sent with texts, as far as its row shows. */
function hadTexts({ flags, assumed }: TextFacts): boolean {
  if (!hasSpanFlag(flags, 'recorded')) return assumed;
  return hasSpanFlag(flags, 'has_texts') || hasSpanFlag(flags, 'texts_sampled_out');
}

const dayOf = ({ started_at }: TextFacts): string => started_at.slice(0, 10);

/** Returns where the texts of each span are, in the same order. */
export async function textStatesOf(
  clickhouse: ClickHouse,
  org_id: string,
  spans: readonly TextFacts[],
  signal: AbortSignal,
): Promise<TextWhereabouts[]> {
  const isGone = (span: TextFacts): boolean => !span.here && span.sampled && hadTexts(span);
  const days = [...new Set(spans.filter(isGone).map(dayOf))];
  const cold =
    days.length === 0
      ? new Map<string, string>()
      : new Map(
          (await readColdDays(clickhouse, { org_id, days }, { signal })).map(({ cold_day, left_on }) => [
            cold_day,
            left_on,
          ]),
        );
  return spans.map((span) => {
    if (span.here) return { state: 'here', left_on: null };
    if (!hadTexts(span)) return { state: 'none', left_on: null };
    if (!span.sampled) return { state: 'sampled_out', left_on: null };
    const left_on = cold.get(dayOf(span));
    return left_on === undefined ? { state: 'dropped', left_on: null } : { state: 'cold', left_on };
  });
}
