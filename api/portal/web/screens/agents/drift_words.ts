// The life of a registration in words: since when an agent is silent, and when that deprecates it. Pure.
import { relativeTime } from '../../text/format.ts';

const DAY_MS = 86_400_000;
/** Silence is mentioned from so many days before the deprecation on. */
const NOTICE_DAYS = 60;

interface Life {
  status: 'registered' | 'archived' | 'deprecated';
  last_seen_at: string | null;
  registered_at: string;
  deprecates_at: string | null;
  archived_at: string | null;
}

const days = (ms: number): string => {
  const whole = Math.max(0, Math.floor(ms / DAY_MS));
  return `${whole} ${whole === 1 ? 'day' : 'days'}`;
};

/** Returns the state of an agent in words. */
export function driftWords(agent: Life, now: number): string {
  if (agent.status === 'archived')
    return agent.archived_at === null ? 'Archived' : `Archived ${relativeTime(Date.parse(agent.archived_at), now)}`;
  if (agent.status === 'deprecated') return 'Deprecated: no events for 90 days';
  const left = agent.deprecates_at === null ? Infinity : Date.parse(agent.deprecates_at) - now;
  if (left > NOTICE_DAYS * DAY_MS) return 'Registered';
  const silent = now - Date.parse(agent.last_seen_at ?? agent.registered_at);
  const words = agent.last_seen_at === null ? `No event since its registration` : `No events for ${days(silent)}`;
  return `${words}; deprecated in ${days(left)}`;
}

/** Returns true where the state needs attention. */
export const isDrifting = (agent: Life, now: number): boolean =>
  agent.status === 'deprecated' || (agent.status === 'registered' && driftWords(agent, now) !== 'Registered');
