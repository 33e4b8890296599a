// The texts of a span: those of its record, or the whole ones where the record has only their
// beginning. Says why there is none.
import { useQuery } from '@tanstack/react-query';
import type { ReactElement } from 'react';
import { useOrganization } from '../../client/session.ts';
import { bytes } from '../../text/format.ts';
import { ButtonLink } from '../../ui/button.tsx';
import { EmptyState } from '../../ui/empty_state.tsx';
import { type SpanDetail, textQuery, type TextSide } from './trace_api.ts';

export interface WholeText {
  text: string;
  /** Null when the whole text is here, `loading` while it is on its way, else the reason. */
  missing: 'loading' | { error: unknown; retry: () => void } | null;
}

/** Returns a text of a span; the whole one is asked for where the record was cut. */
export function useWholeText(traceId: string, detail: SpanDetail, side: TextSide): WholeText {
  const { org_id } = useOrganization();
  const isCut = detail.truncated[side];
  const query = useQuery({ ...textQuery(org_id, traceId, detail.span_id, side), enabled: isCut });
  const begin = detail[side] ?? '';
  if (!isCut) return { text: begin, missing: null };
  if (query.data !== undefined) return { text: query.data, missing: null };
  if (query.isError) return { text: begin, missing: { error: query.error, retry: () => void query.refetch() } };
  return { text: begin, missing: 'loading' };
}

/** Says why a span has no texts; null where it has some. */
export function NoTexts({ traceId, detail }: { traceId: string; detail: SpanDetail }): ReactElement | null {
  const { org_id, can } = useOrganization();
  const settings = `/o/${encodeURIComponent(org_id)}/settings`;
  switch (detail.text_state) {
    case 'here':
      return null;
    case 'cold':
      return (
        <EmptyState
          title="The texts are in cold storage"
          action={
            can('retention:override') ? (
              <ButtonLink href={`${settings}/retention?${new URLSearchParams({ restore: traceId })}`} icon="replay">
                Restore the texts of this trace
              </ButtonLink>
            ) : undefined
          }
        >
          {detail.texts_left_on === null ? '' : `They moved there on ${detail.texts_left_on}. `}
          {can('retention:override') ? '' : 'An owner of the organization can restore them.'}
        </EmptyState>
      );
    case 'dropped':
      return <EmptyState title="The texts were deleted">Retention or an erasure removed them.</EmptyState>;
    case 'sampled_out':
      return (
        <EmptyState
          title="Sampling kept only the numbers"
          action={<ButtonLink href={`${settings}/sampling`}>Show which events are kept</ButtonLink>}
        >
          Prompt, response and attributes of this span were not stored.
        </EmptyState>
      );
    case 'none':
      return <EmptyState title="This span was sent without texts">Its attributes show what was sent.</EmptyState>;
  }
}

/** Says how much of a text is still on its way. */
export const loadingWords = (chars: number): string => `Loading the whole text, about ${bytes(chars)}`;
