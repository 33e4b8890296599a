// Decides when failing traces form an incident. In: the times of the failing traces of one cluster.
// Out: when an incident began, how long it has lasted, and when it ended. Pure: the same traces
// give the same incident, in any order and however often they are evaluated.
import { hex16 } from '../traces/ids.ts';
import { normalizeError } from './error_text.ts';

/** Failing traces within WINDOW_MS that open an incident. */
export const OPEN_TRACES = 5;
/** Time within which OPEN_TRACES failing traces open an incident. */
export const WINDOW_MS = 15 * 60_000;
/** An incident ends after this time without another failing trace. */
export const QUIET_MS = 30 * 60_000;
/** An incident with at least this many traces is critical. */
export const CRITICAL_TRACES = 50;

export const SEVERITIES = ['warning', 'critical'] as const;
export type Severity = (typeof SEVERITIES)[number];

const hexOf = (parts: readonly (string | number)[]): string => hex16(JSON.stringify(parts));

export function severityOf(traces: number): Severity {
  return traces >= CRITICAL_TRACES ? 'critical' : 'warning';
}

/** What failing traces of one cluster have in common. */
export interface Cluster {
  /** clu_ and 16 hex digits; the same in every organization. */
  cluster_id: string;
  /** The normalized error text. */
  error: string;
}

/**
 * Returns the cluster of a failing trace, from its agent, the name of its root span and its error
 * text as received.
 */
export function clusterOf(agent_id: string, root_span_name: string, error_text: string): Cluster {
  const error = normalizeError(error_text);
  return { cluster_id: `clu_${hexOf([agent_id, root_span_name, error])}`, error };
}

/**
 * Returns inc_ and 16 hex digits, derived from the incident's cluster and the time of its first
 * trace.
 */
export function incidentIdOf(org_id: string, cluster_id: string, from_ms: number): string {
  return `inc_${hexOf([org_id, cluster_id, from_ms])}`;
}

/** Returns the event's id, which is identical each time the event is sent. */
export function incidentEventId(event: 'incident.created' | 'incident.resolved', incident_id: string): string {
  return `evt_${hexOf([event, incident_id])}`;
}

/** The time range in which an incident's traces failed so far, milliseconds. */
export interface Spell {
  from_ms: number;
  last_ms: number;
}

/** How an open incident changed. */
export interface Progress extends Spell {
  /**
   * True when QUIET_MS passed after last_ms without a trace, so that later traces do not belong to
   * it.
   */
  ended: boolean;
}

/**
 * Splits rising times into spells: each begins with the first of OPEN_TRACES within WINDOW_MS and
 * ends before QUIET_MS without a trace.
 */
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
 * Returns the earliest time that must be known to see what new traces change: where OPEN_TRACES of
 * them may lie within WINDOW_MS for the first time, and after what is known of an open incident.
 * @param earliest the earliest of the new times
 */
export function lookFrom(open: Spell | null, earliest: number): number {
  if (open === null) return earliest - WINDOW_MS;
  const mayBeginEarlier = earliest <= open.from_ms + WINDOW_MS;
  return Math.min(open.last_ms, mayBeginEarlier ? Math.min(earliest, open.from_ms) - WINDOW_MS : Infinity);
}

/**
 * Returns the first incident that the failing traces form; null when they form none.
 * @param times rising, one a trace
 */
export function firstSpell(times: readonly number[]): Spell | null {
  return spellsOf(times)[0] ?? null;
}

/**
 * Returns how more traces of its cluster change an open incident: earlier ones that arrived late
 * may have begun it, later ones continue it or lie after its end. Traces separate from it and
 * before its beginning change nothing.
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

/** Returns the spell that contains an instant. */
function spellAt(times: readonly number[], at: number): Spell | null {
  return spellsOf(times).find(({ from_ms, last_ms }) => from_ms <= at && at <= last_ms) ?? null;
}

/** Returns true when an incident has ended as of `now`. */
export function isQuiet({ last_ms }: Pick<Spell, 'last_ms'>, now: number): boolean {
  return now - last_ms >= QUIET_MS;
}
