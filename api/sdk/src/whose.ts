// Attributes that every span started inside a function carries: whose work it is.
import { type Context, context, createContextKey, propagation, trace, type Attributes } from '@opentelemetry/api';

export interface Whose {
  sessionId?: string;
  userId?: string;
  agentId?: string;
  tags?: readonly string[];
  department?: string;
  prompt?: { name: string; version?: string };
}

const KEY = createContextKey('millrace.whose');

/** Returns what withWhose has set around a context. */
const whoseOf = (ctx: Context): Whose => (ctx.getValue(KEY) as Whose | undefined) ?? {};

/**
 * Runs a function, all spans of which carry these attributes, also spans of instrumentations. Calls
 * inside calls add to the outer ones.
 */
export function withWhose<R>(whose: Whose, fn: () => R): R {
  const active = context.active();
  return context.with(active.setValue(KEY, { ...whoseOf(active), ...whose }), fn);
}

/** Returns the attributes of spans that are started in a context. */
export function whoseAttributes(ctx: Context): Attributes {
  const { sessionId, userId, agentId, tags, department, prompt } = whoseOf(ctx);
  return {
    ...(sessionId === undefined ? {} : { 'session.id': sessionId }),
    ...(userId === undefined ? {} : { 'user.id': userId }),
    ...(agentId === undefined ? {} : { 'gen_ai.agent.id': agentId }),
    ...(tags === undefined ? {} : { tags: [...tags] }),
    ...(department === undefined ? {} : { department }),
    ...(prompt === undefined ? {} : { prompt_name: prompt.name }),
    ...(prompt?.version === undefined ? {} : { prompt_version: prompt.version }),
  };
}

/**
 * Returns headers for a client of the gateway, so that its calls land in the current trace and carry
 * what withWhose has set. Make them for each call: they name the current span.
 */
export function gatewayHeaders(): Record<string, string> {
  const active = context.active();
  const { sessionId, userId, agentId, tags, prompt } = whoseOf(active);
  const headers: Record<string, string> = {};
  if (trace.getSpanContext(active) !== undefined) propagation.inject(active, headers);
  const named = {
    'X-Service-Session-Id': sessionId,
    'X-Service-User-Id': userId,
    'X-Service-Agent-Id': agentId,
    'X-Service-Tags': tags?.join(','),
    'X-Service-Prompt-Name': prompt?.name,
    'X-Service-Prompt-Version': prompt?.version,
  };
  for (const [name, value] of Object.entries(named)) if (value !== undefined && value !== '') headers[name] = value;
  return headers;
}
