// When failing traces are an incident. In: the times of the failing traces of one cluster. Out: when an incident began, how
// far it has come, and when it was over. Pure: the same traces give the same incident, in whatever order and however often
// they are looked at.
import { hex16 } from '../traces/ids.ts';
import { normalizeError } from './error_text.ts';

/** So many failing traces … */
export const OPEN_TRACES = 5;
/** … within this long open an incident. */
export const WINDOW_MS = 15 * 60_000;
/** An incident is over when this long has passed without another one. */
export const QUIET_MS = 30 * 60_000;
/** From so many traces on an incident is critical. */
export const CRITICAL_TRACES = 50;

export const SEVERITIES = ['warning', 'critical'] as const;
export type Severity = (typeof SEVERITIES)[number];

const hexOf = (parts: readonly (string | number)[]): string => hex16(JSON.stringify(parts));

export function severityOf(traces: number): Severity {
  return traces >= CRITICAL_TRACES ? 'critical' : 'warning';
}

/** What failing traces of one cluster have in common. */
export interface Cluster {
  /** clu_ and 16 hex digits; the same in every org. */
  cluster_id: string;
  /** The error without what differs each time. */
  error: string;
}

/** The cluster of a failing trace, from its agent, the name of its root span and the text of its error as it came. */
export function clusterOf(agent_id: string, root_span_name: string, error_text: string): Cluster {
  const error = normalizeError(error_text);
  return { cluster_id: `clu_${hexOf([agent_id, root_span_name, error])}`, error };
}

/** inc_ and 16 hex digits, from what is an incident's alone: its cluster and the trace that it began with. */
export function incidentIdOf(org_id: string, cluster_id: string, from_ms: number): string {
  return `inc_${hexOf([org_id, cluster_id, from_ms])}`;
}

/** The same whenever the event is told. */
export function incidentEventId(event: 'incident.created' | 'incident.resolved', incident_id: string): string {
  return `evt_${hexOf([event, incident_id])}`;
}

/** From when until when an incident's traces failed so far, milliseconds. */
export interface Spell {
  from_ms: number;
  last_ms: number;
}

/** How an incident has moved on. */
export interface Progress extends Spell {
  /** So long has passed after last_ms without a trace that what comes later is none of it. */
  ended: boolean;
}

/** The spells of times that rise: each begins with the first of OPEN_TRACES within WINDOW_MS and ends before QUIET_MS without any. */
function spellsOf(times: readonly number[]): Spell[] {
  const spells: Spell[] = [];
  let open: Spell | null = null;
  let waiting: number[] = [];
  for (const at of times) {
    if (open !== null && at - open.last_ms < QUIET_MS) {
      open.last_ms = at;
      continue;
    }
    open = null;
    waiting = waiting.filter((earlier) => at - earlier <= WINDOW_MS);
    waiting.push(at);
    const [first] = waiting;
    if (waiting.length < OPEN_TRACES || first === undefined) continue;
    open = { from_ms: first, last_ms: at };
    spells.push(open);
    waiting = [];
  }
  return spells;
}

/**
 * From when on times have to be known to see what new ones change: where five of them may lie within WINDOW_MS for the first
 * time, and after what is known of an incident that is open.
 * @param earliest the earliest of the new times
 */
export function lookFrom(open: Spell | null, earliest: number): number {
  if (open === null) return earliest - WINDOW_MS;
  const mayBeginEarlier = earliest <= open.from_ms + WINDOW_MS;
  return Math.min(open.last_ms, mayBeginEarlier ? Math.min(earliest, open.from_ms) - WINDOW_MS : Infinity);
}

/** The first incident that failing traces are; null where they are none. @param times rising, one a trace */
export function firstSpell(times: readonly number[]): Spell | null {
  return spellsOf(times)[0] ?? null;
}

/**
 * How an open incident has moved on by more traces of its cluster: earlier ones that came late may have begun it, later ones
 * carry it on or lie beyond its end. What lies apart from it before its beginning changes nothing.
 * @param times rising, one a trace
 */
export function progressOf(open: Spell, times: readonly number[]): Progress {
  const begun = times.filter((at) => at <= open.from_ms + WINDOW_MS);
  const from_ms = Math.min(open.from_ms, spellAt(begun, open.from_ms)?.from_ms ?? open.from_ms);
  let last_ms = open.last_ms;
  for (const at of times) {
    if (at <= last_ms) continue;
    if (at - last_ms >= QUIET_MS) return { from_ms, last_ms, ended: true };
    last_ms = at;
  }
  return { from_ms, last_ms, ended: false };
}

/** The spell that holds an instant. */
function spellAt(times: readonly number[], at: number): Spell | null {
  return spellsOf(times).find(({ from_ms, last_ms }) => from_ms <= at && at <= last_ms) ?? null;
}

/** Whether an incident is over as of an instant. */
export function isQuiet({ last_ms }: Pick<Spell, 'last_ms'>, now: number): boolean {
  return now - last_ms >= QUIET_MS;
}
