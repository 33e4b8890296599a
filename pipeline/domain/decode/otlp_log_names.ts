// The names by which log records are recognized: the record's own name, the messages of the GenAI
// conventions, and the identifiers of prompts and sessions. Every alias list of log records is in
// this file or in coding_agents.ts.
import type { Fields } from './draft.ts';

/** Attributes that identify one prompt of a coding agent and everything that it caused. */
export const PROMPTS = ['prompt.id'];
/** Attributes that identify a session. */
export const LOG_SESSIONS = [
  'session.id',
  'gen_ai.conversation.id',
  'conversation.id',
  'session_id',
  'langfuse.session.id',
];
/**
 * Attributes that identify a person, best first. Coding agents send an e-mail address or an account
 * beside an id of the machine in user.id.
 */
export const LOG_USERS = [
  'user.email',
  'user.account_uuid',
  'user.account_id',
  'user_id',
  'user.id',
  'enduser.id',
  'langfuse.user.id',
];

/**
 * Records that belong to their session even if they name a trace: Codex and Gemini CLI put some
 * records of a call into a trace of their own and leave others outside of any.
 */
export const SESSION_ALONE = /^(?:codex|gemini_cli)\./;

/** Records that hold a message of their span, one each, with the role. */
export const MESSAGE_RECORD = /^gen_ai\.(system|user|assistant|tool)\.message$/;
export const CHOICE_RECORD = 'gen_ai.choice';
/** The record that holds all messages of its span in attributes or in its body. */
export const DETAILS_RECORD = 'gen_ai.client.inference.operation.details';

const NAME_LENGTH_MAX = 200;

/**
 * Returns the name of a log record: its event name, and for Claude Code, which shortens that, the
 * body. Empty when it has none.
 */
export function logName({ event_name, attributes, body }: Fields): string {
  const given =
    typeof attributes === 'object' && attributes !== null ? (attributes as Fields)['event.name'] : undefined;
  const name = typeof given === 'string' && given !== '' ? given : event_name;
  if (typeof name !== 'string') return '';
  const isShortened = typeof body === 'string' && body.length <= NAME_LENGTH_MAX && body.endsWith(`.${name}`);
  return isShortened ? body : name;
}

/** Returns true for the record of what a person asked a coding agent. */
export const isPromptRecord = (name: string): boolean => /^(?:claude_code|codex|gemini_cli)\.user_prompt$/.test(name);
