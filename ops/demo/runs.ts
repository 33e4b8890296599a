// Agent runs as benchmark repositories publish them: a task, a reward and the OpenAI-style messages
// of the conversation. Takes the text of a JSON file; returns checked runs with unknown fields
// kept. Pure.
import { z } from 'zod';

const toolCall = z.looseObject({
  id: z.string(),
  type: z.string().optional(),
  function: z.looseObject({ name: z.string().min(1), arguments: z.string() }),
});

const message = z.looseObject({
  role: z.enum(['system', 'developer', 'user', 'assistant', 'tool']),
  content: z.string().nullish(),
  tool_calls: z.array(toolCall).nullish(),
  tool_call_id: z.string().optional(),
  name: z.string().optional(),
});

/** Optional facts of a run about itself. */
const info = z.looseObject({
  agent: z.string().min(1).optional(),
  model: z.string().min(1).optional(),
  department: z.string().optional(),
  user_id: z.string().optional(),
  /** `timeout` for a run that was cut off. Without an outcome the reward decides. */
  outcome: z.enum(['success', 'error', 'timeout']).optional(),
  tags: z.array(z.string()).optional(),
  task: z.looseObject({ user_id: z.string().optional(), instruction: z.string().optional() }).optional(),
});

const run = z.looseObject({
  task_id: z.union([z.string(), z.number()]),
  trial: z.number().int().default(0),
  /** 1 if the run reached its goal, 0 if it failed. */
  reward: z.number(),
  info: info.default({}),
  traj: z.array(message).min(1),
});

export type ToolCall = z.infer<typeof toolCall>;
export type Message = z.infer<typeof message>;
export type Run = z.infer<typeof run>;

/** The file contains no runs; the message is one line that names the first problem. */
export class RunsFileError extends Error {}

/**
 * Parses the runs of a file.
 * @throws RunsFileError naming the first field that is wrong
 */
export function parseRuns(json: string): Run[] {
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch (error) {
    throw new RunsFileError(`is not JSON: ${error instanceof Error ? error.message : String(error)}`);
  }
  const parsed = z.array(run).min(1).safeParse(value);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  throw new RunsFileError(`${issue?.path.map(String).join('.') ?? ''}: ${issue?.message ?? 'must be a list of runs'}`);
}

/**
 * Returns the agent of a run: the one that the run names, else from the first heading of its system
 * prompt ("# Airline Agent Policy").
 */
export function agentOf({ info: { agent }, traj }: Run): string {
  if (agent !== undefined) return agent;
  const system = traj[0]?.role === 'system' ? (traj[0].content ?? '') : '';
  const heading = /^#.+$/m.exec(system)?.[0] ?? '';
  const words = heading.toLowerCase().match(/[a-z0-9]+/g) ?? [];
  if (words.at(-1) === 'policy') words.pop();
  return words.length === 0 ? 'agent' : words.slice(0, 4).join('-');
}
