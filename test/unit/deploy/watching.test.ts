// Alert rules and dashboards against the existing metrics: names, labels, severities, runbooks.
// promtool checks the rules' syntax and their effect on sample series
// (ops/alerts/millrace_test.yaml); it is not installed in CI.
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { registry } from '../../../ops/platform/metrics.ts';
import { collectDefaultMetrics } from 'prom-client';
import { filesIn, projectFile, yamlFile } from '../../support/deploy_files.ts';

collectDefaultMetrics({ register: registry });

/**
 * Labels that Prometheus and the process itself add to every series; exported_job is a metric's own
 * label job.
 */
const GIVEN_LABELS = ['job', 'instance', 'process', 'le'];
const METRIC = z.object({ name: z.string(), labelNames: z.array(z.string()).default([]), type: z.string() });
const known = new Map<string, Set<string>>([['up', new Set(GIVEN_LABELS)]]);
for (const one of registry.getMetricsAsArray()) {
  const { name, labelNames, type } = METRIC.parse({ ...one, type: String((one as { type?: unknown }).type) });
  const labels = new Set([...GIVEN_LABELS, ...labelNames.map((label) => (label === 'job' ? 'exported_job' : label))]);
  if (labelNames.includes('job')) labels.delete('job');
  const series = type === 'histogram' ? ['_bucket', '_sum', '_count'].map((end) => name + end) : [name];
  for (const one of series) known.set(one, labels);
}

/**
 * Returns the metrics of a PromQL expression with their labels: names outside of braces that are
 * neither functions nor keywords.
 */
function asked(expr: string): { metrics: string[]; labels: string[] } {
  const metrics: string[] = [];
  const labels: string[] = [];
  const bare = expr.replaceAll(/"[^"]*"/g, '""').replaceAll(/\[[^\]]*\]/g, '');
  for (const [, list] of bare.matchAll(/\{([^}]*)\}/g))
    for (const [, label] of (list ?? '').matchAll(/(\w+)\s*(?:=~|!~|!=|=)/g)) labels.push(label ?? '');
  for (const [, list] of bare.matchAll(/\b(?:by|without|on|ignoring)\s*\(([^)]*)\)/g))
    labels.push(...(list ?? '').split(',').map((label) => label.trim()));
  const rest = bare.replaceAll(/\{[^}]*\}/g, '').replaceAll(/\b(?:by|without|on|ignoring)\s*\([^)]*\)/g, '');
  for (const [, name, call] of rest.matchAll(/([a-zA-Z_:][\w:]*)\s*(\()?/g))
    if (call === undefined && !/^(and|or|unless|offset|bool|[0-9]+[smhd]|[smhd])$/.test(name ?? ''))
      metrics.push(name ?? '');
  return { metrics, labels: labels.filter((label) => label !== '') };
}

/** Returns what is wrong with an expression; empty when every metric and label exists. */
function wrongIn(expr: string): string[] {
  const { metrics, labels } = asked(expr);
  if (metrics.length === 0) return [`no metric in ${expr}`];
  const has = new Set(metrics.flatMap((name) => [...(known.get(name) ?? [])]));
  return [
    ...metrics.filter((name) => !known.has(name)).map((name) => `${name} is no metric`),
    ...labels.filter((label) => !has.has(label)).map((label) => `${label} is no label in ${expr}`),
  ];
}

it('the reader of expressions finds names and labels, and unknown ones', () => {
  expect(asked('max by (stream) (a_b{x="n{o}t", y=~"z"}[5m]) / sum(rate(c[1h] offset 1h)) > 0.5 and up == 1')).toEqual({
    metrics: ['a_b', 'c', 'up'],
    labels: ['x', 'y', 'stream'],
  });
  expect(wrongIn('sum by (stage) (rate(millrace_pipeline_events_dead_total{reason="x"}[5m]))')).toEqual([]);
  expect(wrongIn('sum(rate(millrace_ingest_request_total[5m]))')).toHaveLength(1);
  expect(wrongIn('max by (job) (millrace_job_overdue_seconds{kind="x"})')).toHaveLength(2);
});

describe('alert rules', () => {
  const rule = z.strictObject({
    alert: z.string().regex(/^Millrace[A-Z][A-Za-z]+$/),
    expr: z.string(),
    for: z
      .string()
      .regex(/^[0-9]+[smh]$/)
      .optional(),
    labels: z.strictObject({ severity: z.enum(['critical', 'warning']) }),
    annotations: z.strictObject({ summary: z.string(), description: z.string(), runbook_url: z.string() }),
  });
  const { groups } = z
    .object({ groups: z.array(z.strictObject({ name: z.string(), rules: z.array(rule) })) })
    .parse(yamlFile('ops/alerts/millrace.yaml'));
  const rules = groups.flatMap((group) => group.rules);

  it.each(rules.map((one) => [one.alert, one] as const))(
    'the alert %s queries existing metrics, and has a runbook',
    (alert, { expr, annotations }) => {
      expect(wrongIn(expr)).toEqual([]);
      expect(annotations.runbook_url).toBe(`ops/runbooks/${alert}.md`);
      const runbook = projectFile(annotations.runbook_url);
      for (const part of [
        `# ${alert}`,
        '## Symptom',
        '## Effect on users',
        '## Check',
        '## Do',
        '## Over when',
        '## Tested',
      ])
        expect(runbook).toContain(part);
    },
  );

  it('promtool tests every rule, and every runbook has a rule', () => {
    const { tests } = z
      .looseObject({ tests: z.array(z.looseObject({ name: z.string() })) })
      .parse(yamlFile('ops/alerts/millrace_test.yaml'));
    const names = rules.map(({ alert }) => alert).toSorted();
    const tried = new Set(tests.map(({ name }) => name.split(' ', 1)[0] ?? ''));
    expect([...tried].toSorted()).toEqual(names);
    expect(filesIn('ops/runbooks').filter((file) => file !== 'README.md')).toEqual(names.map((name) => `${name}.md`));
  });

  it('the metrics in runbooks exist', () => {
    for (const { alert } of rules)
      for (const [name] of projectFile(`ops/runbooks/${alert}.md`).matchAll(/\bmillrace_[a-z_]+[a-z]\b/g))
        expect([alert, name, [...known.keys()].some((one) => one.startsWith(name))]).toEqual([alert, name, true]);
  });
});

describe('dashboards', () => {
  const dashboard = z.looseObject({
    uid: z.string(),
    panels: z.array(
      z.looseObject({
        id: z.int(),
        title: z.string(),
        gridPos: z.object({ x: z.int(), y: z.int(), w: z.int(), h: z.int() }),
        targets: z
          .array(z.looseObject({ refId: z.string(), expr: z.string().optional(), rawSql: z.string().optional() }))
          .min(1),
      }),
    ),
  });
  const files = filesIn('ops/dashboards').filter((file) => file.endsWith('.json'));

  it.each(files)('the dashboard %s queries existing metrics, in panels that do not overlap', (file) => {
    const { uid, panels } = dashboard.parse(JSON.parse(projectFile(`ops/dashboards/${file}`)));
    expect(uid).toBe(`millrace-${file.replace('.json', '')}`);
    expect(
      panels.flatMap(({ targets }) => targets.flatMap(({ expr }) => (expr === undefined ? [] : wrongIn(expr)))),
    ).toEqual([]);
    const cells = panels.flatMap(({ gridPos: { x, y, w, h } }) =>
      Array.from({ length: w * h }, (_, at) => `${x + (at % w)},${y + Math.floor(at / w)}`),
    );
    expect(new Set(cells).size).toBe(cells.length);
    expect(panels.every(({ gridPos: { x, w } }) => x + w <= 24)).toBe(true);
  });

  it('no metric of the service is missing from the dashboards', () => {
    const all = files.map((file) => projectFile(`ops/dashboards/${file}`)).join();
    const own = registry
      .getMetricsAsArray()
      .map(({ name }) => name)
      .filter((name) => name.startsWith('millrace_'));
    expect(own.filter((name) => !all.includes(name))).toEqual([]);
  });
});
