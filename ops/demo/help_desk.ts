// The help desk of the demonstration: the questions that its customers ask, two versions of the prompt
// that answers them, and one short run for each question. Everything is computed, so it is the same
// each time. Pure.
import type { Scenario, Step } from './scenario.ts';

export const HELP_AGENT = 'help-desk';
export const HELP_PROMPT = 'help-desk-answer';
/** Name of the root span of every run. */
export const HELP_RUN = 'answer question';
export const HELP_MODEL = 'gpt-4o-mini';

/** Questions with the answers that the agent gives. */
export const QUESTIONS = [
  ['How do I reset my password?', 'Open Settings, then Security, and choose Reset password.'],
  ['Where can I see my invoices?', 'Invoices are under Billing, newest first.'],
  ['Can I change the delivery address?', 'Yes, until the parcel is handed to the carrier.'],
  ['Do you ship to Norway?', 'Yes. Delivery takes three to five working days.'],
  ['My sofa has a scratch. Can I get a refund?', 'Yes. Send us a photo within 30 days for a refund.'],
] as const;

interface Message {
  role: string;
  content: string;
}

/** Texts of the system message by version; the question of the customer follows it. */
const SYSTEM = {
  '1': 'You answer customers of a furniture shop.',
  '2': 'You answer customers of a furniture shop in one short sentence that says where to find more.',
} as const;
export const HELP_VERSIONS = ['1', '2'] as const;
type Version = (typeof HELP_VERSIONS)[number];

/** Returns the messages of a version of the prompt; its variable is `question`. */
export const helpTemplate = (version: Version): Message[] => [
  { role: 'system', content: SYSTEM[version] },
  { role: 'user', content: '{{question}}' },
];

const FAILURE_EVERY = 17;
/** Runs of the newest version; older ones used the version before. */
const NEWEST_RUNS = 60;

/**
 * Returns a short run of the help desk; one of 17 fails because its search is down.
 * @param index 0 for the newest run
 */
export function helpDesk(index: number): Scenario {
  const [asked, answer] = QUESTIONS[index % QUESTIONS.length] ?? QUESTIONS[0];
  const down = index % FAILURE_EVERY === FAILURE_EVERY - 1;
  const search: Step = {
    kind: 'tool',
    name: 'search_articles',
    own_ms: 120 + ((index * 53) % 190),
    input: { query: asked },
    output: [{ article: index % 40, score: 0.8 }],
  };
  return {
    agent: HELP_AGENT,
    department: 'support',
    user_id: `customer_${1000 + ((index * 7) % 40)}`,
    session_id: `session_help_${Math.floor(index / 2)}`,
    tags: ['help', index % 4 === 0 ? 'web' : 'app'],
    root: {
      kind: 'event',
      name: HELP_RUN,
      own_ms: 10,
      input: asked,
      ...(down ? { outcome: 'error' as const, output: 'Error: no answer was found' } : { output: answer }),
      steps: down
        ? [{ ...search, own_ms: 5000, outcome: 'error', output: 'Error: connection to search-1 refused' }]
        : [search, answerCall(index, asked, answer)],
    },
  };
}

function answerCall(index: number, asked: string, answer: string): Step {
  const version: Version = index < NEWEST_RUNS ? '2' : '1';
  const model = index % 3 === 0 ? 'gpt-4o' : HELP_MODEL;
  return {
    kind: 'llm',
    name: model,
    model,
    own_ms: 600 + ((index * 131) % 1900),
    tokens: [300 + ((index * 29) % 500), 40 + (index % 60)],
    input: helpTemplate(version).map(({ role, content }) => ({
      role,
      content: content.replace('{{question}}', asked),
    })),
    output: answer,
    prompt: { name: HELP_PROMPT, version, variables: { question: asked } },
  };
}
