// What every sampling profile keeps, to the millisecond and the letter, and how fair the rate is.
import { describe, expect, it } from 'vitest';
import { keepRule, keptByRate, PROFILE_RATE } from '../../../pipeline/domain/traces/keep_rules.ts';
import { customKind, namedKindOf } from '../../../pipeline/domain/decode/kinds.ts';
import { aSpan } from '../../support/spans.ts';

const lasting = (ms: number) => aSpan({ started_at: 1_000_000, ended_at: 1_000_000 + ms });

describe('keepRule', () => {
  it.each([
    [4999, null],
    [5000, null],
    [5001, 'slow'],
  ])('a span of %i ms at a threshold of 5000 is kept: %s', (ms, rule) => {
    expect(keepRule([lasting(ms)], 5000)).toBe(rule);
  });

  it.each([
    ['success', null],
    ['error', 'error'],
    ['timeout', 'error'],
  ] as const)('a span with the outcome %s is kept: %s', (outcome, rule) => {
    expect(keepRule([aSpan({ outcome })], 5000)).toBe(rule);
  });

  it.each([
    [true, 'force_trace'],
    ['true', 'force_trace'],
    [false, null],
    [1, null],
    [null, null],
  ])('attributes.force_trace %j keeps the span: %s', (force_trace, rule) => {
    expect(keepRule([aSpan({ attributes: { force_trace } })], 5000)).toBe(rule);
  });

  it.each([
    ['loop', 'loop'],
    ['LOOP', 'loop'],
    ['agent.loop', 'loop'],
    ['loop_detected', 'loop'],
    ['tool_error', 'tool_error'],
    ['Tool-Error', 'tool_error'],
    ['tool error', 'tool_error'],
    ['stumble', 'stumble'],
    ['Judge', 'judge'],
    ['stat-gate', 'stat_gate'],
    ['STAT_GATE', 'stat_gate'],
    ['stat gate', 'stat_gate'],
    ['MCP-auth', 'mcp_auth'],
    ['mcp auth failed', 'mcp_auth'],
    ['loopback', null],
    ['prejudge', null],
    ['judgement', null],
    ['mcp_authority', null],
    ['toolerror', null],
    ['gpt-4o', null],
    ['', null],
  ])('%j is the named kind %s, in the name and in attributes.event_type', (text, kind) => {
    expect(namedKindOf(text)).toBe(kind);
    expect(keepRule([aSpan({ name: text })], 5000)).toBe(kind);
    expect(keepRule([aSpan({ attributes: { event_type: text } })], 5000)).toBe(kind);
  });

  it("the sender's measured duration counts where the times are closer together", () => {
    const span = (duration_ms: unknown) =>
      aSpan({ started_at: 1_000_000, ended_at: 1_000_010, attributes: { duration_ms } });
    expect([6000, 5000, '6000'].map((ms) => keepRule([span(ms)], 5000))).toEqual(['slow', null, null]);
  });

  it('a rule applies to an event when it applies to any of its spans', () => {
    expect(keepRule([aSpan(), aSpan({ outcome: 'error' })], 5000)).toBe('error');
    expect(keepRule([aSpan(), aSpan()], 5000)).toBeNull();
  });
});

describe('keptByRate', () => {
  const traces = Array.from({ length: 100_000 }, (_, i) => `trc_${i.toString(16).padStart(16, '0')}`);

  it.each([
    ['balanced', 0.15],
    ['aggressive', 0.05],
  ] as const)('the rate %s keeps its share of many traces, within six standard deviations', (profile, rate) => {
    expect(PROFILE_RATE[profile]).toBe(rate);
    const kept = traces.filter((trace) => keptByRate(trace, rate)).length;
    expect(Math.abs(kept - traces.length * rate)).toBeLessThan(6 * Math.sqrt(traces.length * rate * (1 - rate)));
  });

  it('a rate of full keeps all, and any rate what a lower rate keeps', () => {
    for (const trace of traces.slice(0, 5000)) {
      expect(keptByRate(trace, PROFILE_RATE.full)).toBe(true);
      if (keptByRate(trace, 0.05)) expect(keptByRate(trace, 0.15)).toBe(true);
    }
  });
});

describe('customKind', () => {
  it.each([
    ['llm', [], 'llm'],
    ['LLM', ['tool'], 'llm'],
    ['tool', ['llm'], 'tool'],
    ['Tool-Call', [], 'tool'],
    ['app', [], 'app'],
    ['event', ['tool_call'], 'event'],
    [undefined, ['tool'], 'tool'],
    [undefined, ['tool.search'], 'tool'],
    [undefined, ['toolbox'], 'event'],
    [undefined, [undefined, 'llm_call'], 'llm'],
    [undefined, ['checkpoint', 'tool_use'], 'tool'],
    ['chain', ['step'], 'event'],
    [7, [], 'event'],
  ])('a custom event with span_kind %j and event types %j is of the kind %s', (spanKind, types, kind) => {
    expect(customKind(spanKind, types)).toBe(kind);
  });
});
