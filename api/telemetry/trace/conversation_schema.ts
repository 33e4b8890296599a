// Response shapes of the conversation of a trace.
import { z } from 'zod';
import { outcome } from '../../../schemas/formats/fields.ts';
import { MESSAGE_CHARS_MAX } from '../../../pipeline/domain/conversation/messages.ts';
import { textState } from './schema.ts';

export const conversationQuery = z.object({
  cursor: z.string().max(500).optional().describe('meta.next_cursor of the previous page'),
});

const toolCall = z.object({
  id: z.string().nullable(),
  name: z.string(),
  arguments: z.string().describe('Arguments as text, usually JSON'),
});

const message = z.object({
  index: z.int().describe('Position in the prompt of the call'),
  role: z.string().describe('system, user, assistant, tool, or the role as sent'),
  text: z.string().describe(`At most the first ${MESSAGE_CHARS_MAX.toLocaleString('en')} characters`),
  chars: z.int().describe('Length of the whole text in UTF-16 code units'),
  reasoning: z.string().nullable().describe('Thinking of the model, where the message has it'),
  tool_calls: z.array(toolCall),
  tool_call_id: z.string().nullable().describe('Call whose result the message is'),
  attachments: z
    .array(
      z.object({
        type: z.string().describe('Type of the part as sent, such as image_url or file'),
        url: z.string().nullable().describe('Address of the content; null if the content was sent inline'),
      }),
    )
    .describe('Parts of the message that are not text'),
  repeats: z
    .enum(['answer', 'tool_result'])
    .nullable()
    .describe('Set if an earlier step of this page shows the same: as its answer, or as the result of its tool call'),
});

const answer = z.object({
  text: z.string(),
  chars: z.int(),
  reasoning: z.string().nullable(),
  finish_reasons: z.array(z.string()),
  tool_calls: z.array(
    toolCall.extend({
      result: z
        .string()
        .nullable()
        .describe('What the tool returned, from the next call that was sent it or from the span of the tool'),
      result_chars: z.int().describe('Length of the whole result'),
      span_id: z.string().nullable().describe('Span of the tool, where one is found'),
      outcome: outcome.nullable().describe('Outcome of that span'),
    }),
  ),
});

const step = z.object({
  span_id: z.string(),
  parent_span_id: z.string().nullable(),
  name: z.string(),
  model: z.string(),
  outcome,
  error: z.string().nullable().describe('Error message of a failed call'),
  started_at: z.iso.datetime(),
  duration_ms: z.int(),
  input_tokens: z.int(),
  output_tokens: z.int(),
  cost_usd: z.number(),
  text_state: textState.describe('Where the texts of the call are, as in the span'),
  omitted: z.boolean().describe('Whether its texts are larger than a page holds; the span has their beginnings'),
  base_span_id: z
    .string()
    .nullable()
    .describe(
      'Earlier call that the messages are compared with: the one among the calls of the same parents whose messages begin the same for longest. null if all messages are new',
    ),
  context: z
    .object({ messages: z.int(), chars: z.int() })
    .describe('Size of the whole prompt: number of messages, and characters of their texts'),
  kept: z.int().describe('Number of messages that the base has too'),
  added: z.array(message).describe('Messages that the base does not have'),
  changed: z
    .array(z.object({ before: message, after: message }))
    .describe('Messages that stand in the place of a message of the base with the same role'),
  dropped: z.array(message).describe('Messages of the base that the call does not have'),
  answer: answer.nullable().describe('null if no answer is stored'),
});

export const conversation = z.object({ trace_id: z.string(), steps: z.array(step) });
export type Conversation = z.infer<typeof conversation>;
export type ConversationStep = z.infer<typeof step>;

export const conversationMeta = z.object({
  total: z.int().describe('Number of model calls of the trace'),
  next_cursor: z.string().nullable().describe('Cursor of the next page. null on the last page'),
});
