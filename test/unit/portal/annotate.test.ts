// The keys of scores while labelling.
import { describe, expect, it } from 'vitest';
import {
  EMPTY_QUEUE,
  isReady,
  type QueueDraft,
  queueOf,
  withScore,
} from '../../../api/portal/web/screens/annotate/queue_draft.ts';
import {
  activeScore,
  choicesOf,
  missingScore,
  optionsOf,
  type ScoreSpec,
} from '../../../api/portal/web/screens/annotate/score_keys.ts';

const tone: ScoreSpec = { name: 'tone', type: 'categorical', options: ['kind', 'curt'], required: true };
const stars: ScoreSpec = { name: 'stars', type: 'numeric', range: { min: 1, max: 5 }, required: true };
const note: ScoreSpec = { name: 'note', type: 'boolean', required: false };

describe('choices', () => {
  it('have the digits 1 to 9 in the order of the options', () => {
    expect(choicesOf(tone)?.map(({ key, value }) => [key, value])).toEqual([
      ['1', 'kind'],
      ['2', 'curt'],
    ]);
  });

  it('of a short range of whole numbers have the numbers themselves as keys', () => {
    expect(choicesOf(stars)?.map(({ key, value }) => [key, value])).toEqual([1, 2, 3, 4, 5].map((n) => [String(n), n]));
  });

  it('of any other range are typed', () => {
    expect(choicesOf({ ...stars, range: { min: 0, max: 100 } })).toBeNull();
    expect(choicesOf({ ...stars, range: { min: 0, max: 0.5 } })).toBeNull();
  });

  it('of a preference are left, right and equal', () => {
    const better: ScoreSpec = { name: 'better', type: 'preference', required: true };
    expect(choicesOf(better)?.map(({ key, value }) => [key, value])).toEqual([
      ['1', 'left'],
      ['2', 'right'],
      ['0', 'equal'],
    ]);
  });
});

describe('a digit', () => {
  it('acts on the first score without a value, or on the one that the focus has reached', () => {
    expect(activeScore([tone, stars], {}, null)?.name).toBe('tone');
    expect(activeScore([tone, stars], { tone: 'kind' }, null)?.name).toBe('stars');
    expect(activeScore([tone, stars], { tone: 'kind' }, 'tone')?.name).toBe('tone');
    expect(activeScore([tone], { tone: 'kind' }, null)?.name).toBe('tone');
  });
});

describe('an answer', () => {
  it('is whole once every required score has a value', () => {
    expect(missingScore([tone, note], {})).toBe('tone');
    expect(missingScore([tone, note], { tone: 'kind' })).toBeNull();
    expect(missingScore([note], {})).toBe('note');
    expect(missingScore([note], { note: false })).toBeNull();
  });
});

it('options are split at commas, without spaces, empty ones and repeats', () => {
  expect(optionsOf(' yes, no,,yes , not sure')).toEqual(['yes', 'no', 'not sure']);
});

describe('the form of a queue', () => {
  const draft = { ...EMPTY_QUEUE, name: ' Answers ', instructions: 'Read both.' };

  it('makes a request with every score, of which added ones are optional', () => {
    const [first] = draft.scores;
    const two = withScore(draft);
    const named = { ...two, scores: two.scores.map((score) => (score === first ? score : { ...score, name: 'tone' })) };
    expect(queueOf(named)).toEqual({
      name: 'Answers',
      instructions: 'Read both.',
      mode: 'single',
      people_per_item: 1,
      scores: [
        { name: 'correct', type: 'categorical', options: ['yes', 'partly', 'no'], required: true },
        { name: 'tone', type: 'categorical', options: ['yes', 'partly', 'no'], required: false },
      ],
    });
  });

  it('asks for a preference in a queue of pairs, whatever was chosen before', () => {
    expect(queueOf({ ...draft, mode: 'pairwise' }).scores).toEqual([
      { name: 'correct', type: 'preference', required: true },
    ]);
  });

  it('is not ready before the queue and each score have a name, and takes at most 8 scores', () => {
    expect(isReady(draft)).toBe(true);
    expect(isReady({ ...draft, name: '  ' })).toBe(false);
    expect(isReady(withScore(draft))).toBe(false);
    let full: QueueDraft = draft;
    for (let n = 0; n < 20; n++) full = withScore(full);
    expect(full.scores.length).toBe(8);
    expect(new Set(full.scores.map(({ id }) => id)).size).toBe(8);
  });
});
