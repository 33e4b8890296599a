// Maps the texts of a conversation in the JSON text of a request or an answer; all other bytes stay
// as they were sent. Takes text that has been parsed as a JSON object and the names of its members
// that hold the conversation. Names of members, and values that are no text of the conversation
// (roles, types, ids, encoded data), are left alone.
import { endOfString, membersOf, skipSpace } from './json_members.ts';

/** Members whose values are no text of the conversation. */
const NO_TEXTS: ReadonlySet<string> = new Set([
  'role',
  'type',
  'id',
  'tool_use_id',
  'tool_call_id',
  'call_id',
  'model',
  'name',
  'media_type',
  'data',
  'signature',
  'encrypted_content',
  'url',
  'image_url',
  'file_id',
  'finish_reason',
  'status',
]);

/** Returns the text with every text of the conversation replaced by what `map` returns for it. */
export function mapStrings(text: string, members: readonly string[], map: (text: string) => string): string {
  const pieces: string[] = [];
  let done = 0;
  for (const { name, start, end } of membersOf(text)) {
    if (!members.includes(name)) continue;
    let key = '';
    for (let at = text.indexOf('"', start); at >= 0 && at < end;) {
      const stop = endOfString(text, at);
      const literal = text.slice(at, stop);
      if (text.charAt(skipSpace(text, stop)) === ':') key = JSON.parse(literal) as string;
      else if (!NO_TEXTS.has(key)) {
        const value = JSON.parse(literal) as string;
        const mapped = map(value);
        if (mapped !== value) {
          pieces.push(text.slice(done, at), JSON.stringify(mapped));
          done = stop;
        }
      }
      at = text.indexOf('"', stop);
    }
  }
  return pieces.length === 0 ? text : pieces.join('') + text.slice(done);
}
