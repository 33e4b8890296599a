// The scenarios that the demonstration sends beside the sample runs: failures after retries, a loop,
// a long wait for a person, agents that work in parallel, and a run of 2,000 spans. Everything is computed, so it is the same each time.
import type { Scenario, Step } from './scenario.ts';

const user = (text: string): unknown[] => [{ role: 'user', content: text }];
const system = (text: string, asked: string): unknown[] => [{ role: 'system', content: text }, ...user(asked)];

function call(model: string, own_ms: number, tokens: readonly [number, number], input: unknown, output: string): Step {
  return { kind: 'llm', name: model, model, own_ms, tokens, input, output };
}

function tool(name: string, own_ms: number, input: unknown, output: unknown): Step {
  return { kind: 'tool', name, own_ms, input, output };
}

const failed = (step: Step, more: Partial<Step> = {}): Step => ({ ...step, outcome: 'error', ...more });

/** A payment is tried four times with growing pauses, then the run gives up. */
function retries(): Scenario {
  const asked = 'Please charge my card for order KW-50131 and send the receipt.';
  const charge = { order_id: 'KW-50131', amount: '149.00', currency: 'EUR' };
  const refused = 'Error: 429 from the payment provider: too many requests, try again later';
  const attempt = (wait_ms: number): Step => failed(tool('charge_card', 640, charge, refused), { wait_ms });
  return {
    agent: 'checkout-agent',
    department: 'sales',
    user_id: 'customer_7714',
    session_id: 'session_checkout_50131',
    tags: ['checkout'],
    root: {
      kind: 'event',
      name: 'pay order KW-50131',
      own_ms: 12,
      outcome: 'error',
      input: asked,
      output: 'Error: the payment could not be completed',
      steps: [
        call(
          'gpt-4.1-mini',
          920,
          [612, 48],
          system('You complete orders. Charge once, then send the receipt.', asked),
          'I will look up the order first.',
        ),
        tool('get_order', 85, { order_id: 'KW-50131' }, { status: 'open', total: '149.00', currency: 'EUR' }),
        attempt(0),
        attempt(1000),
        attempt(2000),
        failed(tool('charge_card', 710, charge, 'Error: card_declined: the issuer declined the payment'), {
          wait_ms: 4000,
        }),
      ],
    },
  };
}

const LOOPS = 37;

/** An agent calls one tool again and again with the same arguments until its time is over. */
function loop(): Scenario {
  const asked = 'Find me a direct flight from Berlin to Honolulu on Friday for under 300 euros.';
  const search = { from: 'BER', to: 'HNL', date: '2026-02-06', direct: true, max_eur: 300 };
  const turns = Array.from({ length: LOOPS }, (_, index): Step[] => [
    tool('search_flights', 420 + ((index * 67) % 240), search, { flights: [], note: 'no direct flight on this route' }),
  ]).flat();
  return {
    agent: 'travel-planner',
    department: 'travel',
    user_id: 'customer_1188',
    session_id: 'session_travel_1188',
    tags: ['travel'],
    root: {
      kind: 'event',
      name: 'plan trip to Honolulu',
      own_ms: 8,
      outcome: 'timeout',
      input: asked,
      output: 'Timed out: the run reached its limit of 40 steps',
      steps: [
        call(
          'gpt-4o',
          1800,
          [840, 95],
          system('You are a travel planner. Use the tools.', asked),
          'I will search for direct flights.',
        ),
        ...turns,
        {
          ...call('gpt-4o', 2600, [9120, 12], user('No flight was found 37 times. What next?'), ''),
          outcome: 'timeout',
        },
      ],
    },
  };
}

/** Most of the run's time is spent waiting until a person approves. */
function approval(): Scenario {
  const asked = 'Book the team offsite: 14 people, two nights, Lisbon.';
  return {
    agent: 'office-assistant',
    department: 'people',
    user_id: 'employee_0877',
    session_id: 'session_offsite_0877',
    tags: ['approval'],
    root: {
      kind: 'event',
      name: 'book team offsite',
      own_ms: 5,
      input: asked,
      output: 'Booked: Hotel Lisboa Plaza, 14 rooms, 2 nights, 5,320 EUR.',
      steps: [
        call(
          'gpt-4o',
          2300,
          [1100, 210],
          system('You book travel. Ask for approval above 1,000 EUR.', asked),
          'Two hotels fit. I will ask for approval of the first.',
        ),
        tool('search_hotels', 1450, { city: 'Lisbon', rooms: 14, nights: 2 }, [
          { hotel: 'Hotel Lisboa Plaza', eur: 5320 },
          { hotel: 'Casa do Rio', eur: 6110 },
        ]),
        tool(
          'request_approval',
          180,
          { amount_eur: 5320, approver: 'head_of_people' },
          { request: 'apr_201', state: 'waiting' },
        ),
        { ...tool('read_approval', 90, { request: 'apr_201' }, { state: 'approved' }), wait_ms: 2_520_000 },
        tool('book_hotel', 2100, { hotel: 'Hotel Lisboa Plaza', rooms: 14, nights: 2 }, { booking: 'LX-90021' }),
        call(
          'gpt-4o',
          1200,
          [1620, 64],
          user('The hotel is booked: LX-90021.'),
          'Booked: Hotel Lisboa Plaza, 14 rooms, 2 nights, 5,320 EUR.',
        ),
      ],
    },
  };
}

const TOPICS = ['price history', 'competitors', 'customer reviews'] as const;

/** A lead agent hands three questions to agents that work at the same time. */
function parallel(): Scenario {
  const asked = 'Write a one-page brief on the market for espresso machines.';
  const helper = (topic: string, index: number): Step => ({
    kind: 'event',
    name: `research ${topic}`,
    own_ms: 20,
    steps: [
      call(
        'gpt-4.1-mini',
        900 + index * 350,
        [480, 60],
        user(`Research: ${topic}`),
        `I will search the web for ${topic}.`,
      ),
      tool('web_search', 700 + index * 210, { query: `espresso machines ${topic}` }, [
        `https://example.com/${index}/1`,
        `https://example.com/${index}/2`,
      ]),
      ...[1, 2].map((page) =>
        tool(
          'read_page',
          380 + page * 120 + index * 90,
          { url: `https://example.com/${index}/${page}` },
          `A page about ${topic}.`,
        ),
      ),
      call(
        'gpt-4.1-mini',
        1500 + index * 600,
        [3900, 320],
        user(`Summarise what you found about ${topic}.`),
        `Summary of ${topic}: the market grew by ${4 + index} % last year.`,
      ),
    ],
  });
  return {
    agent: 'research-lead',
    department: 'marketing',
    user_id: 'employee_0412',
    session_id: 'session_brief_0412',
    tags: ['research'],
    root: {
      kind: 'event',
      name: 'write market brief',
      own_ms: 15,
      input: asked,
      output: 'The market for espresso machines grew by 5 % last year …',
      steps: [
        call('gpt-4o', 2100, [730, 140], user(asked), 'I will ask three assistants.'),
        { kind: 'event', name: 'research', own_ms: 4, parallel: true, steps: TOPICS.map(helper) },
        call(
          'gpt-4o',
          6400,
          [4800, 910],
          user('Write the brief from the three summaries.'),
          'The market for espresso machines grew by 5 % last year …',
        ),
      ],
    },
  };
}

const LARGE_SPANS = 2000;
const PAGES_A_BATCH = 20;
/** Spans of a page: read, summarise, store; with its parent. */
const SPANS_A_PAGE = 4;

/** Indexes documents in batches until the store is full: 2,000 spans with the failure in the last batch. */
function large(): Scenario {
  const page = (number: number): Step => ({
    kind: 'event',
    name: 'index page',
    own_ms: 2,
    steps: [
      tool('read_page', 18 + (number % 7) * 4, { page: number }, `Text of page ${number} of the handbook.`),
      call(
        'gpt-4.1-nano',
        210 + (number % 11) * 35,
        [420 + (number % 13) * 17, 36],
        user(`Summarise page ${number}.`),
        `Page ${number} explains one rule.`,
      ),
      tool('store_page', 9 + (number % 5), { page: number }, { stored: true }),
    ],
  });
  const batches: Step[] = [];
  let pages = 0;
  // The root, the final call and the failing step are three spans; each batch is one beside its pages.
  let left = LARGE_SPANS - 3;
  while (left > SPANS_A_PAGE) {
    const fitting = Math.min(PAGES_A_BATCH, Math.floor((left - 1) / SPANS_A_PAGE));
    batches.push({
      kind: 'event',
      name: `batch ${batches.length + 1}`,
      own_ms: 6,
      steps: Array.from({ length: fitting }, (_, index) => page(pages + index + 1)),
    });
    pages += fitting;
    left -= 1 + fitting * SPANS_A_PAGE;
  }
  const last = batches.pop();
  if (last === undefined) throw new Error('the large scenario has no batch');
  const failure = failed(
    tool('store_page', 31, { page: pages + 1 }, 'Error: no space left in collection "handbook" (quota 2 GiB)'),
  );
  const fillers = Array.from({ length: left }, (_, index) =>
    tool('list_pages', 22, { offset: index }, { pages: PAGES_A_BATCH }),
  );
  return {
    agent: 'document-indexer',
    department: 'platform',
    user_id: 'service_indexer',
    session_id: 'session_handbook_index',
    tags: ['batch'],
    root: {
      kind: 'event',
      name: 'index employee handbook',
      own_ms: 20,
      outcome: 'error',
      input: 'Index every page of the employee handbook.',
      output: 'Error: indexing stopped: the collection is full',
      steps: [
        ...fillers,
        call('gpt-4.1-nano', 350, [240, 20], user('Plan the batches.'), 'I will index in batches of 20 pages.'),
        ...batches,
        failed({ ...last, steps: [...(last.steps ?? []), failure] }),
      ],
    },
  };
}

/** Returns the scenarios that are worth opening, the first of which is the newest. */
export const scenarios = (): Scenario[] => [retries(), loop(), approval(), parallel(), large()];
