// The days of an agent, from the rows of an analytics query by day: the day, the traces, the failed ones,
// the cost and the tokens. Pure.

export interface AgentDay {
  /** Date in UTC. */
  day: string;
  traces: number;
  failed: number;
  cost_usd: number;
  tokens: number;
}

/** Returns one entry for each row. */
export function daysOf(rows: readonly (readonly unknown[])[]): AgentDay[] {
  return rows.map(([time, ...values]) => {
    const [traces = 0, failed = 0, cost_usd = 0, tokens = 0] = values.map((value) =>
      typeof value === 'number' ? value : 0,
    );
    return { day: typeof time === 'string' ? time.slice(0, 10) : '', traces, failed, cost_usd, tokens };
  });
}
