// Shapes the steps of a conversation for the response: texts up to a bound, with their lengths.
import { type Message, MESSAGE_CHARS_MAX } from '../../../pipeline/domain/conversation/messages.ts';
import type { ModelCall, Step } from '../../../pipeline/domain/conversation/steps.ts';
import type { ConversationStep } from './conversation_schema.ts';
import type { PlacedRow } from './conversation_page.ts';
import type { TextState } from './schema.ts';
import type { CallDetails } from './store.ts';

export interface PageCall extends ModelCall {
  started_ms: number;
  row: PlacedRow;
  detail: CallDetails;
  text_state: TextState;
}

type MessageItem = ConversationStep['added'][number];

const cut = (text: string): string => text.slice(0, MESSAGE_CHARS_MAX).toWellFormed();
const orNull = (text: string): string | null => (text === '' ? null : text);

/** @param outcomes outcomes of tools by number of their spans */
export function stepItem(
  call: PageCall,
  { base, changes, repeats, calls }: Step,
  outcomes: ReadonlyMap<number, CallDetails['outcome']>,
): ConversationStep {
  const { row, detail } = call;
  const now = (position: number, repeated: MessageItem['repeats'] = null): MessageItem[] =>
    itemsAt(call.messages, position, repeated);
  const then = (position: number): MessageItem[] => itemsAt(base?.messages ?? [], position, null);
  return {
    span_id: row.span_id,
    parent_span_id: orNull(row.parent_span_id),
    name: detail.name,
    model: detail.model,
    outcome: detail.outcome,
    error: orNull(detail.message),
    started_at: row.started_at,
    duration_ms: detail.ended_ms - row.started_ms,
    input_tokens: detail.input_tokens,
    output_tokens: detail.output_tokens,
    cost_usd: detail.cost_usd,
    text_state: call.text_state,
    omitted: row.omitted,
    base_span_id: base?.span_id ?? null,
    context: {
      messages: call.messages.length,
      chars: call.messages.reduce((sum, { text }) => sum + text.length, 0),
    },
    kept: changes.kept,
    added: changes.added.flatMap((position) => now(position, repeats.get(position) ?? null)),
    changed: changes.changed.flatMap(({ before, after }) => {
      const [[old], [fresh]] = [then(before), now(after)];
      return old === undefined || fresh === undefined ? [] : [{ before: old, after: fresh }];
    }),
    dropped: changes.dropped.flatMap(then),
    answer: answerOf(call, calls, outcomes),
  };
}

function itemsAt(messages: readonly Message[], position: number, repeats: MessageItem['repeats']): MessageItem[] {
  const message = messages[position];
  if (message === undefined) return [];
  const { index, role, text, reasoning, tool_calls, tool_call_id, attachments } = message;
  return [
    {
      index,
      role,
      text: cut(text),
      chars: text.length,
      reasoning: orNull(cut(reasoning)),
      tool_calls: tool_calls.map((one) => ({ ...one, arguments: cut(one.arguments) })),
      tool_call_id: orNull(tool_call_id),
      attachments: attachments.map(({ type, url }) => ({ type, url })),
      repeats,
    },
  ];
}

function answerOf(
  { response, detail }: PageCall,
  calls: Step['calls'],
  outcomes: ReadonlyMap<number, CallDetails['outcome']>,
): ConversationStep['answer'] {
  if (response === '' && calls.length === 0 && detail.reasoning === '') return null;
  return {
    text: cut(response),
    chars: response.length,
    reasoning: orNull(cut(detail.reasoning)),
    finish_reasons: detail.finish_reasons,
    tool_calls: calls.map(({ id, name, arguments: given, result, run }) => ({
      id,
      name,
      arguments: cut(given),
      result: result === null ? null : cut(result),
      result_chars: result?.length ?? 0,
      span_id: run?.span_id ?? null,
      outcome: run === null ? null : (outcomes.get(run.span) ?? null),
    })),
  };
}
