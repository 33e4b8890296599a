// Kinds of steps as attributes: the operation of the OpenTelemetry conventions for generative AI, and
// the span kind of OpenInference where those have none.
import type { Attributes } from '@opentelemetry/api';

export type StepKind =
  'agent' | 'chain' | 'tool' | 'retriever' | 'embedding' | 'llm' | 'guardrail' | 'evaluator' | 'step';

const OPERATIONS: Partial<Record<StepKind, string>> = {
  agent: 'invoke_agent',
  tool: 'execute_tool',
  retriever: 'retrieval',
  embedding: 'embeddings',
  llm: 'chat',
};

/** Returns the attributes of a step's kind. */
export function kindAttributes(kind: StepKind, name: string): Attributes {
  const operation = OPERATIONS[kind];
  return {
    'openinference.span.kind': kind === 'step' ? 'CHAIN' : kind.toUpperCase(),
    ...(operation === undefined ? {} : { 'gen_ai.operation.name': operation }),
    ...(kind === 'tool' ? { 'gen_ai.tool.name': name } : {}),
    ...(kind === 'agent' ? { 'gen_ai.agent.name': name } : {}),
  };
}

/** Beginnings of attribute names that tell a span of an LLM application from others. */
const SPEAKS = ['gen_ai.', 'openinference.', 'llm.', 'ai.', 'traceloop.', 'langfuse.', 'langsmith.', 'mcp.'];

/** Returns whether any attribute is one of generative AI. */
export const speaksGenAi = (attributes: Attributes): boolean =>
  Object.keys(attributes).some((key) => SPEAKS.some((beginning) => key.startsWith(beginning)));
