// Sends traces of LLM applications to Millrace, and reads and writes scores, prompts and analytics.
export { init, type InitOptions, type Instrumentation, type Millrace } from './init.ts';
export type { FlushResult } from './processor.ts';
export { currentStep, observe, step, type ObserveOptions, type Step, type Usage } from './observe.ts';
export type { StepKind } from './kinds.ts';
export { gatewayHeaders, withWhose, type Whose } from './whose.ts';
export {
  MillraceClient,
  type AnalyticsQuery,
  type AnalyticsResult,
  type ClientOptions,
  type DatasetItem,
  type DatasetRun,
  type Eval,
  type Query,
  type RequestOptions,
  type Score,
  type ScoreInput,
} from './client.ts';
export { fillPrompt, type Prompt, type PromptBy, type PromptMessage } from './prompts.ts';
export { MillraceError } from './errors.ts';
export type { SpoolOptions } from './spool.ts';
