// The deployments of ops/deploy as the tests read them: services of Docker Compose, manifests of
// Kubernetes, and those of both with several shards of ClickHouse.
import { z } from 'zod';
import { filesIn, yamlDocuments, yamlFile } from './deploy_files.ts';

export const FOLDER = 'ops/deploy';
const probe = z.looseObject({
  httpGet: z.object({ path: z.string(), port: z.union([z.string(), z.int()]) }).optional(),
});
const container = z.looseObject({
  image: z.string(),
  command: z.array(z.string()).optional(),
  env: z.array(z.looseObject({ name: z.string(), value: z.string().optional() })).default([]),
  ports: z.array(z.object({ name: z.string(), containerPort: z.int() })).default([]),
  startupProbe: probe.optional(),
  readinessProbe: probe.optional(),
  livenessProbe: probe.optional(),
});
export type Container = z.infer<typeof container>;
export const workload = z.looseObject({
  kind: z.string(),
  metadata: z.looseObject({ name: z.string() }),
  spec: z.looseObject({
    template: z.looseObject({
      spec: z.looseObject({ terminationGracePeriodSeconds: z.int(), containers: z.array(container).length(1) }),
    }),
  }),
});
export const object = z.looseObject({
  apiVersion: z.string(),
  kind: z.string(),
  metadata: z.looseObject({ name: z.string() }),
});
const service = z.looseObject({
  image: z.string(),
  command: z.array(z.string()).optional(),
  environment: z.record(z.string(), z.string()).default({}),
  stop_grace_period: z.string().optional(),
  healthcheck: z
    .object({ test: z.array(z.string()) })
    .loose()
    .optional(),
});

/** Services of compose.yaml. */
export const compose = z
  .object({ services: z.record(z.string(), service) })
  .parse(yamlFile(`${FOLDER}/compose.yaml`)).services;
/** Returns the names of the YAML files in a folder of the project. */
export const yamlFilesIn = (folder: string): string[] => filesIn(folder).filter((file) => file.endsWith('.yaml'));
/** Objects of the manifests without shards. */
export const manifests = yamlFilesIn(`${FOLDER}/kubernetes`).flatMap((file) =>
  yamlDocuments(`${FOLDER}/kubernetes/${file}`),
);
/** Folder of the component with two shards. */
export const SHARDS = `${FOLDER}/kubernetes/shards`;
/** Objects that the component adds. */
export const shardManifests = yamlDocuments(`${SHARDS}/clickhouse.yaml`);
/** Services of compose.shards.yaml, which is read after compose.yaml. */
export const override = z
  .object({ services: z.record(z.string(), service.partial({ image: true })) })
  .parse(yamlFile(`${FOLDER}/compose.shards.yaml`)).services;
/** Returns the object of a kind with a name. */
export const named = (kind: string, name: string): unknown =>
  manifests.find((one) => {
    const { kind: itsKind, metadata } = object.parse(one);
    return itsKind === kind && metadata.name === name;
  });
/** Returns the pod of a workload. */
export const podOf = (kind: string, name: string) => workload.parse(named(kind, name)).spec.template.spec;
/** Returns the only container of a workload. */
export const containerOf = (kind: string, name: string): Container => {
  const [only] = podOf(kind, name).containers;
  if (only === undefined) throw new Error(`${name} has no container`);
  return only;
};
/** Settings that the component of shards adds to both Deployments. */
export const patchedEnv = z
  .array(z.object({ op: z.literal('add'), path: z.string(), value: z.object({ name: z.string(), value: z.string() }) }))
  .parse(yamlFile(`${SHARDS}/shards_setting.yaml`))
  .map(({ value }) => value);
