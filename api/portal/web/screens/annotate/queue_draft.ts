// A new annotation queue as its form holds it, and the request that it becomes. Pure.
import type { components } from '../../client/contract.d.ts';
import { optionsOf, type ScoreSpec } from './score_keys.ts';

type NewQueue = Pick<
  components['schemas']['AnnotationQueue'],
  'name' | 'instructions' | 'mode' | 'scores' | 'people_per_item'
>;

/** Scores of one queue, as the API bounds them. */
export const SCORES_MAX = 8;

export interface ScoreDraft {
  /** Key among the scores of the form. */
  id: number;
  name: string;
  type: 'categorical' | 'boolean' | 'numeric';
  options: string;
  min: string;
  max: string;
  required: boolean;
}

export interface QueueDraft {
  name: string;
  instructions: string;
  mode: 'single' | 'pairwise';
  people: string;
  scores: readonly ScoreDraft[];
}

const scoreDraft = (id: number, name: string): ScoreDraft => ({
  id,
  name,
  type: 'categorical',
  options: 'yes, partly, no',
  min: '1',
  max: '5',
  required: id === 0,
});

export const EMPTY_QUEUE: QueueDraft = {
  name: '',
  instructions: '',
  mode: 'single',
  people: '1',
  scores: [scoreDraft(0, 'correct')],
};

/** Returns the queue with one more score, which an answer need not have. */
export function withScore(draft: QueueDraft): QueueDraft {
  if (draft.scores.length >= SCORES_MAX) return draft;
  const id = 1 + Math.max(...draft.scores.map((score) => score.id));
  return { ...draft, scores: [...draft.scores, scoreDraft(id, '')] };
}

/** Returns true if nothing that the request needs is missing. */
export const isReady = ({ name, scores }: QueueDraft): boolean =>
  name.trim() !== '' && scores.every((score) => score.name.trim() !== '');

/** Returns the body of the request. */
export function queueOf({ name, instructions, mode, people, scores }: QueueDraft): NewQueue {
  return {
    name: name.trim(),
    instructions,
    mode,
    scores: scores.map((score) => specOf(score, mode)),
    people_per_item: Number(people),
  };
}

function specOf({ name, type, options, min, max, required }: ScoreDraft, mode: QueueDraft['mode']): ScoreSpec {
  const named = { name: name.trim(), required };
  if (mode === 'pairwise') return { ...named, type: 'preference' };
  switch (type) {
    case 'categorical':
      return { ...named, type, options: optionsOf(options) };
    case 'numeric':
      return { ...named, type, range: { min: Number(min), max: Number(max) } };
    case 'boolean':
      return { ...named, type };
  }
}
