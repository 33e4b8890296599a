import { describe, expect, it } from 'vitest';
import { makeCalls } from '../../../api/telemetry/traces/replay_calls.ts';
import { type ChatAnswer, type Upstream, UpstreamFailed } from '../../../ops/platform/llm/upstream.ts';
import type { ReplayCall } from '../../../pipeline/domain/traces/replay.ts';

const BOUNDS = { atOnce: 2, callMs: 60_000, replayMs: 60_000, answerBytes: 10_000 };
const calls = (count: number): ReplayCall[] =>
  Array.from({ length: count }, (_, i) => ({
    span: {
      span_id: `span-${i}`,
      parent_span_id: '',
      kind: 'llm',
      name: 'm',
      model: 'm',
      started_ms: i,
      attributes: {},
      tags: [],
      prompt: 'p',
      response: 'r',
      sampled: true,
    },
    prompt_name: null,
    prompt_version: null,
    model: `model-${i}`,
    new_prompt: 'p',
    messages: [{ role: 'user', content: 'p' }],
    parameters: { temperature: 0.5 },
  }));
const answer = (text: string): ChatAnswer => ({
  text,
  usage: null,
  model: 'm',
  finish_reason: 'stop',
  raw: { text },
  started_at: 0,
  ended_at: 1,
});
/** Rejects with the signal's reason when it aborts. */
const untilEnded = (signal: AbortSignal) =>
  new Promise<never>((_, reject) => {
    if (signal.aborted) reject(signal.reason as Error);
    signal.addEventListener('abort', () => {
      reject(signal.reason as Error);
    });
  });
const never = new AbortController().signal;

describe('the calls of a replay', () => {
  it('the calls of a replay begin in order, a few at a time, and are answered in order', async () => {
    const begun: string[] = [];
    let open = 0;
    let openMax = 0;
    const upstream: Upstream = {
      async chat({ model, temperature }) {
        begun.push(model);
        openMax = Math.max(openMax, ++open);
        expect(temperature).toBe(0.5);
        for (let turns = model === 'model-0' ? 20 : 2; turns > 0; turns--) await Promise.resolve();
        open--;
        return answer(`of ${model}`);
      },
    };
    const answers = await makeCalls(upstream, calls(5), never, BOUNDS);
    expect(answers.map(({ text }) => text)).toEqual([0, 1, 2, 3, 4].map((i) => `of model-${i}`));
    expect([begun, openMax]).toEqual([[0, 1, 2, 3, 4].map((i) => `model-${i}`), 2]);
  });

  it('the calls of a replay end with the first that fails, which says why', async () => {
    const asked: string[] = [];
    const upstream: Upstream = {
      chat({ model }, { signal }) {
        asked.push(model);
        return model === 'model-1'
          ? Promise.reject(new UpstreamFailed('refused', 'no such model', { status: 404 }))
          : untilEnded(signal);
      },
    };
    await expect(makeCalls(upstream, calls(5), never, BOUNDS)).rejects.toMatchObject({
      code: 'replay_failed',
      detail: 'Span span-1: its model model-1 is gone, no such model.',
    });
    expect(asked).toEqual(['model-0', 'model-1']);
  });

  it('a permanent failure is distinguished from one that may pass', async () => {
    const codeOf = async (error: Error): Promise<unknown> => {
      const failed = await makeCalls({ chat: () => Promise.reject(error) }, calls(1), never, BOUNDS).catch(
        (cause: unknown) => cause,
      );
      return (failed as { code?: unknown }).code ?? (failed as Error).message;
    };
    expect(await codeOf(new UpstreamFailed('refused', 'too long', { status: 400 }))).toBe('replay_failed');
    expect(await codeOf(new UpstreamFailed('refused', 'bad key', { status: 401 }))).toBe('upstream_unavailable');
    expect(await codeOf(new UpstreamFailed('unavailable', 'busy', { status: 429 }))).toBe('upstream_unavailable');
    expect(await codeOf(new Error('a bug'))).toBe('a bug');
  });

  it('the calls of a replay are bounded in time together', async () => {
    const upstream: Upstream = { chat: (_, { signal }) => untilEnded(signal) };
    await expect(makeCalls(upstream, calls(3), never, { ...BOUNDS, replayMs: 5 })).rejects.toMatchObject({
      code: 'upstream_unavailable',
    });
  });

  it('the calls of a replay are bounded in the size of their answers together', async () => {
    const upstream: Upstream = { chat: () => Promise.resolve(answer('x'.repeat(6000))) };
    expect(await makeCalls(upstream, calls(1), never, BOUNDS)).toHaveLength(1);
    await expect(makeCalls(upstream, calls(2), never, BOUNDS)).rejects.toMatchObject({ code: 'replay_failed' });
  });

  it('the calls of a replay end when their caller disconnects', async () => {
    const caller = new AbortController();
    const upstream: Upstream = {
      chat: (_, { signal }) => {
        caller.abort(new Error('gone'));
        return untilEnded(signal);
      },
    };
    await expect(makeCalls(upstream, calls(3), caller.signal, BOUNDS)).rejects.toThrow('gone');
  });
});
