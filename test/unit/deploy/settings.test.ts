// The settings in the files of ops/deploy: known, accepted, without defaults for secrets, and the same
// shards in every process.
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { shardsOfPartitions } from '../../../schemas/shards.ts';
import { parseEnv } from '../../../ops/platform/env.ts';
import { projectFile } from '../../support/deploy_files.ts';
import {
  compose,
  type Container,
  containerOf,
  FOLDER,
  named,
  override,
  patchedEnv,
  SHARDS,
} from '../../support/deployments.ts';

describe('settings', () => {
  const known = new Set([...projectFile('ops/deploy/env.example').matchAll(/^([A-Z_]+)=/gm)].map(([, name]) => name));
  const configMap = z
    .looseObject({ data: z.record(z.string(), z.string()) })
    .parse(named('ConfigMap', 'millrace')).data;
  const envOf = ({ env }: Container): Record<string, string> => ({
    ...configMap,
    ...Object.fromEntries(env.map(({ name, value }) => [name, value ?? filled(name)])),
  });
  /** Returns what an operator would fill in for a secret. */
  const filled = (name: string): string => {
    if (name === 'SERVICE_BOOTSTRAP_API_KEY') return 'sk_svc_0123456789abcdef';
    if (name === 'SERVICE_ENCRYPTION_KEY') return 'ab'.repeat(32);
    if (name === 'SERVICE_SMTP_URL') return '';
    return 'a'.repeat(40);
  };
  const withShards = (env: Record<string, string>): Record<string, string> => {
    const { SERVICE_CLICKHOUSE_URL: _, ...rest } = env;
    return { ...rest, ...Object.fromEntries(patchedEnv.map(({ name, value }) => [name, value])) };
  };
  const composed = (name: string): Record<string, string> => ({
    ...compose[name]?.environment,
    ...override[name]?.environment,
  });
  const processes: [string, Record<string, string>][] = [
    ['compose api', compose['api']?.environment ?? {}],
    ['compose pipeline', compose['pipeline']?.environment ?? {}],
    ['kubernetes api', envOf(containerOf('Deployment', 'api'))],
    ['kubernetes pipeline', envOf(containerOf('Deployment', 'pipeline'))],
    ['compose api with shards', composed('api')],
    ['compose pipeline with shards', composed('pipeline')],
    ['kubernetes api with shards', withShards(envOf(containerOf('Deployment', 'api')))],
    ['kubernetes pipeline with shards', withShards(envOf(containerOf('Deployment', 'pipeline')))],
  ];
  const parsed = (env: Record<string, string>) =>
    parseEnv(
      Object.fromEntries(
        Object.entries(env).map(([name, value]) => [
          name,
          value
            .replace(/^\$\{\w+:\?[^}]*\}$/, () => filled(name))
            .replaceAll(/\$\{\w+:-([^}]*)\}|\$\{\w+:\?[^}]*\}|\$\(\w+\)/g, (_all, given?: string) => given ?? 'secret'),
        ]),
      ),
    );

  it.each(processes)(
    '%s: every setting is in ops/deploy/env.example, and the service starts with them once the secrets are filled in',
    (_, env) => {
      const own = Object.keys(env).filter((name) => /^(SERVICE|AWS)_/.test(name));
      expect(own.length).toBeGreaterThan(10);
      expect(own.filter((name) => !known.has(name))).toEqual([]);
      expect(parsed(env).SERVICE_ENV).toBe('production');
    },
  );

  it.each([
    ['compose', 'compose api with shards', 'compose pipeline with shards', `${FOLDER}/clickhouse/shards.xml`],
    ['kubernetes', 'kubernetes api with shards', 'kubernetes pipeline with shards', `${SHARDS}/cluster.xml`],
  ])(
    '%s: every process names the same shards, which take all partitions and are listed in the cluster',
    (_, ...names) => {
      const envs = processes.filter(([name]) => names.includes(name)).map(([, env]) => parsed(env));
      const [api, pipeline] = envs;
      expect(pipeline?.SERVICE_CLICKHOUSE_SHARDS).toEqual(api?.SERVICE_CLICKHOUSE_SHARDS);
      const shards = api?.SERVICE_CLICKHOUSE_SHARDS ?? [];
      expect(shards).toHaveLength(2);
      for (const env of envs) {
        expect(env.SERVICE_CLICKHOUSE_URL).toBeUndefined();
        shardsOfPartitions(shards, env.SERVICE_PARTITIONS);
      }
      const cluster = projectFile(names.at(-1) ?? '');
      const first = [
        ...cluster.matchAll(
          /<shard>\s*(?:<internal_replication>true<\/internal_replication>\s*)?<replica><host>([^<]+)</g,
        ),
      ];
      expect(shards.map(({ urls }) => URL.parse(urls[0] ?? '')?.hostname)).toEqual(first.map(([, host]) => host));
      expect(cluster).toContain(`<${api?.SERVICE_CLICKHOUSE_CLUSTER ?? 'millrace'}>`);
      expect(cluster).toContain('<secret from_env="CLICKHOUSE_CLUSTER_SECRET"/>');
    },
  );

  it('secrets have no defaults: they are empty in the examples, and compose refuses to continue without them', () => {
    const secret = z
      .looseObject({ stringData: z.record(z.string(), z.literal('')) })
      .parse(named('Secret', 'millrace'));
    const asked = [...projectFile(`${FOLDER}/kubernetes/service.yaml`).matchAll(/key: ([A-Z_]+) /g)].map(
      ([, key]) => key ?? '',
    );
    expect(asked.length).toBeGreaterThan(10);
    expect(asked.filter((key) => !(key in secret.stringData))).toEqual([]);
    const text = projectFile(`${FOLDER}/compose.yaml`) + projectFile(`${FOLDER}/compose.shards.yaml`);
    for (const [, name, kind] of text.matchAll(/\$\{(\w*(?:TOKEN|PASSWORD|SECRET|_KEY)\w*):(.)/g))
      expect([name, kind]).toEqual([name, /^(AWS_|SERVICE_LLM|SERVICE_OIDC)/.test(name ?? '') ? '-' : '?']);
  });
});
