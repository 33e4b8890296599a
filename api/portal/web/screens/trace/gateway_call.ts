// A stored model call as a command that makes it again through the gateway. Pure.
import type { Message } from '../../trace/text/messages.ts';

/** Returns the message in the form of the chat completions API. */
function chatMessage({ role, text, tool_calls, tool_call_id }: Message): object {
  return {
    role,
    content: text,
    ...(tool_calls.length === 0
      ? {}
      : {
          tool_calls: tool_calls.map((call) => ({
            id: call.id ?? '',
            type: 'function',
            function: { name: call.name, arguments: call.arguments },
          })),
        }),
    ...(tool_call_id === null ? {} : { tool_call_id }),
  };
}

/**
 * Returns the curl command of a model call.
 * @param origin address of the service, for example http://127.0.0.1:8080
 */
export function gatewayCall(origin: string, model: string, messages: readonly Message[]): string {
  const body = JSON.stringify({ model, messages: messages.map(chatMessage) }, null, 2);
  // A quote within the body ends the quoted text, stands for itself, and begins it again.
  const quoted = body.replaceAll("'", "'\\''");
  return [
    `curl -s '${origin}/v1/chat/completions'`,
    `-H "Authorization: Bearer $MILLRACE_API_KEY" -H 'Content-Type: application/json'`,
    `-d '${quoted}'`,
  ].join(' \\\n  ');
}
