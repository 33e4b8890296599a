// Annotation queues with runs of the demonstration, some of them answered, for the pages and the
// pictures of the portal.
type Post = (path: string, body: unknown) => Promise<unknown>;
type Mode = 'single' | 'pairwise';

interface Made {
  data: { queue_id: string };
}
interface Leased {
  data: { item_id: string }[];
}

const ANSWERED = 2;

/**
 * Creates a queue of traces and answers its first items.
 * @param trace_ids an even number of traces
 * @returns its id
 */
export async function fillQueue(post: Post, mode: Mode, trace_ids: readonly string[]): Promise<string> {
  const correct = { name: 'correct', type: 'categorical', options: ['yes', 'partly', 'no'] };
  const tone = { name: 'tone', type: 'numeric', range: { min: 1, max: 5 }, required: false };
  const made = (await post('/v1/annotation-queues', {
    name: mode === 'single' ? 'Support answers' : 'Which answer is better',
    instructions: 'Is the answer correct by the refund policy, and would you have sent it?',
    mode,
    scores: mode === 'single' ? [correct, tone] : [{ name: 'better', type: 'preference' }],
  })) as Made;
  const root = `/v1/annotation-queues/${made.data.queue_id}`;
  await post(`${root}/items`, { trace_ids });
  for (let n = 0; n < ANSWERED; n++) {
    const { data } = (await post(`${root}/next`, {})) as Leased;
    const [item] = data;
    if (item === undefined) break;
    const scores = mode === 'single' ? { correct: n === 0 ? 'partly' : 'yes', tone: 4 } : { better: 'left' };
    await post(`${root}/items/${item.item_id}`, { scores, comment: n === 0 ? 'Cites the old policy' : '' });
  }
  return made.data.queue_id;
}
