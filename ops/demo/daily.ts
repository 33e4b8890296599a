// The daily runs of the demonstration: two agents that work once a day for a month, so that costs, their forecast and
// outcomes have days to show, and an outage in which the runs of one agent fail for one reason, so that there is an
// incident. Everything is computed, so it is the same each time. Pure.
import type { Scenario, Step } from './scenario.ts';

const DAY_MS = 86_400_000;
const MINUTE_MS = 60_000;
export const DAILY_DAYS = 30;
/** Days before the newest run on which the digest was run over far more tickets than on any other. */
const BUSY_DAY = 9;
/** Failing runs of the outage, and the time between two of them. */
export const OUTAGE_RUNS = 6;
const OUTAGE_EVERY_MS = 2 * MINUTE_MS;
/** The outage ended so long before the newest run. */
const OUTAGE_AGO_MS = 3 * 60 * MINUTE_MS;

/** A scenario with the time at which it ends, milliseconds before the newest run. */
export interface Dated {
  scenario: Scenario;
  ago_ms: number;
}

/** Returns the tickets of a day: fewer at each seventh and sixth day, slowly more from month to month. */
function ticketsOf(day: number): number {
  const usual = 52 - day + ((day * 17) % 9);
  if (day === BUSY_DAY) return usual * 4;
  return day % 7 > 4 ? Math.round(usual / 3) : usual;
}

function llm(model: string, own_ms: number, tokens: readonly [number, number], asked: string, output: string): Step {
  return { kind: 'llm', name: model, model, own_ms, tokens, input: [{ role: 'user', content: asked }], output };
}

/** Every evening an agent of the support department writes a digest of the tickets of the day. */
function digest(day: number): Scenario {
  const tickets = ticketsOf(day);
  const asked = `Summarise the ${tickets} tickets of today by product, and name the three that need an answer first.`;
  const answer = `${tickets} tickets were answered. Most were about delivery dates; three wait for a refund.`;
  return {
    agent: 'ticket-digest',
    department: 'support',
    user_id: 'service_digest',
    session_id: `session_digest_${day}`,
    tags: ['digest', 'batch'],
    root: {
      kind: 'event',
      name: 'write digest',
      own_ms: 20,
      input: asked,
      output: answer,
      outcomes: { tickets },
      steps: [
        { kind: 'tool', name: 'read_tickets', own_ms: 400 + tickets * 3, input: { day: 'today' }, output: { tickets } },
        llm('gpt-4o', 4000 + tickets * 40, [900 * tickets, 600 + tickets], asked, answer),
      ],
    },
  };
}

/** Every morning an agent of the purchasing department compares the prices of suppliers. */
function priceWatch(day: number): Scenario {
  const offers = 120 + ((day * 31) % 60);
  const asked = `Compare the ${offers} offers of the suppliers with the prices of the catalogue.`;
  const answer = `${offers % 11} offers are below the price of the catalogue.`;
  return {
    agent: 'price-watch',
    department: 'purchasing',
    user_id: 'service_prices',
    session_id: `session_prices_${day}`,
    tags: ['prices', 'batch'],
    root: {
      kind: 'event',
      name: 'compare offers',
      own_ms: 15,
      input: asked,
      output: answer,
      outcomes: { offers },
      steps: [
        { kind: 'tool', name: 'read_offers', own_ms: 900, input: { suppliers: 12 }, output: { offers } },
        llm('gpt-4.1-mini', 5200, [240 * offers, 400], asked, answer),
      ],
    },
  };
}

/** While a carrier does not answer, every question where a parcel is fails. */
function outage(index: number): Scenario {
  const error = `Error: timeout after ${5000 + index} ms from carrier-api`;
  const asked = `Where is parcel PX-${7100 + index}?`;
  return {
    agent: 'parcel-tracker',
    department: 'support',
    user_id: `customer_${1040 + index}`,
    session_id: `session_parcel_${index}`,
    tags: ['parcels'],
    root: {
      kind: 'event',
      name: 'track parcel',
      own_ms: 10,
      outcome: 'error',
      input: asked,
      output: error,
      steps: [
        llm('gpt-4o-mini', 700, [310, 24], asked, 'I will ask the carrier.'),
        {
          kind: 'tool',
          name: 'carrier_status',
          own_ms: 5000 + index,
          outcome: 'error',
          input: { parcel: 7100 + index },
          output: error,
        },
      ],
    },
  };
}

/** Returns the runs, the newest first within each kind. */
export function dailyRuns(): Dated[] {
  const days = Array.from({ length: DAILY_DAYS }, (_, at) => at + 1);
  return [
    ...days.map((day) => ({ scenario: digest(day), ago_ms: day * DAY_MS })),
    ...days.map((day) => ({ scenario: priceWatch(day), ago_ms: day * DAY_MS - 8 * 60 * MINUTE_MS })),
    ...Array.from({ length: OUTAGE_RUNS }, (_, index) => ({
      scenario: outage(index),
      ago_ms: OUTAGE_AGO_MS + index * OUTAGE_EVERY_MS,
    })),
  ];
}
