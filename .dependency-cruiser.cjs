// Rules for the direction of imports between the folders that CONTRIBUTING.md lists. The comment of a rule says what it protects.
/** @type {import('dependency-cruiser').IConfiguration} */
const typesAside = { dependencyTypesNot: ['type-only'] };
module.exports = {
  forbidden: [
    { name: 'no-cycles', severity: 'error', from: {}, to: { circular: true, viaOnly: typesAside } },
    {
      name: 'schemas-and-sql-stand-alone',
      severity: 'error',
      comment: 'schemas import nothing of the project; sql imports schemas and the pure rules of domain',
      from: { path: '^(sql|schemas)/' },
      // The bits of a span's flags are one table: decode writes them, SQL and the pages read them.
      to: {
        path: '^(api|ops|pipeline|test)/',
        pathNot: '^pipeline/domain/traces/span_flags\\.ts$',
        ...typesAside,
      },
    },
    { name: 'schemas-know-no-sql', severity: 'error', from: { path: '^schemas/' }, to: { path: '^sql/' } },
    {
      name: 'domain-is-pure',
      severity: 'error',
      comment: 'domain does no input or output: it imports itself, types, and the shapes of the formats',
      from: { path: '^pipeline/domain/' },
      to: { path: '^(api|ops|sql|test|pipeline/(?!domain/)|schemas/codec)', ...typesAside },
    },
    {
      name: 'stages-know-domain-only',
      severity: 'error',
      comment: 'a stage is a function over a batch; the worker reads, writes and waits',
      from: { path: '^pipeline/stages/' },
      to: { path: '^(api|ops|sql|test|pipeline/(?!domain/|stages/))', ...typesAside },
    },
    {
      name: 'rooms-of-the-pipeline-know-no-wiring',
      severity: 'error',
      from: { path: '^pipeline/(?!wiring/|main)' },
      to: { path: '^(api/|test/|pipeline/(main|wiring/))' },
    },
    {
      name: 'only-the-worker-room-drives',
      severity: 'error',
      comment: 'the folders that the worker drives do not import it',
      from: { path: '^pipeline/(traces|landing|judging|settings|queues|stages)/' },
      to: { path: '^pipeline/worker/', ...typesAside },
    },
    {
      name: 'settings-and-queues-are-the-ground',
      severity: 'error',
      from: { path: '^pipeline/(settings|queues)/' },
      to: { path: '^pipeline/(?!settings/|queues/|domain/)', ...typesAside },
    },
    {
      name: 'api-knows-domain-only',
      severity: 'error',
      comment: 'the API shares the rules of the pipeline, not its machinery',
      from: { path: '^api/' },
      to: { path: '^(test/|pipeline/(?!domain/))', ...typesAside },
    },
    {
      name: 'the-sdk-is-a-package-of-its-own',
      severity: 'error',
      comment: 'applications install it without the service; what both know goes over the API',
      from: { path: '^api/sdk/' },
      to: { path: '^(?!api/sdk/|node_modules/)', dependencyTypesNot: ['core', 'npm', 'npm-dev', 'npm-peer'] },
    },
    {
      name: 'the-service-knows-no-sdk',
      severity: 'error',
      from: { path: '^(?!api/sdk/|test/)' },
      to: { path: '^api/sdk/' },
    },
    { name: 'edge-knows-no-room', severity: 'error', from: { path: '^api/http/' }, to: { path: '^api/(?!http/)' } },
    {
      name: 'admission-knows-the-edge-only',
      severity: 'error',
      from: { path: '^api/admission/' },
      to: { path: '^api/(?!http/|admission/)', ...typesAside },
    },
    {
      name: 'slices-stand-alone',
      severity: 'error',
      comment:
        'slices import http, admission, openapi and pipeline/domain only; api/wiring connects them. The endpoints for clients of other vendors share intake/compat',
      from: { path: '^api/(intake|telemetry|control)/([^/]+)/' },
      to: { path: '^api/(?!http/|admission/|openapi/|intake/compat/)', pathNot: '^api/$1/$2/' },
    },
    {
      name: 'ops-knows-no-service-code',
      severity: 'error',
      from: { path: '^ops/', pathNot: '^ops/demo/' },
      to: { path: '^(api|pipeline|test)/', ...typesAside },
    },
    {
      name: 'platform-is-the-ground-of-ops',
      severity: 'error',
      from: { path: '^ops/platform/' },
      to: { path: '^ops/(?!platform/)' },
    },
    {
      name: 'exchange-knows-platform-only',
      severity: 'error',
      from: { path: '^ops/exchange/' },
      to: { path: '^ops/(?!platform/|exchange/)' },
    },
    {
      name: 'launch-is-for-starting',
      severity: 'error',
      comment: 'the code that starts the processes is not imported by them',
      from: { path: '^(api|pipeline)/' },
      to: { path: '^ops/(launch|tools)/' },
    },
    {
      name: 'portal-pages-stand-alone',
      severity: 'error',
      comment:
        'the code of the pages runs in a browser: it imports itself, its packages, the table of pages and the flags of spans',
      from: { path: '^api/portal/web/' },
      to: {
        path: '^(api|ops|pipeline|schemas|sql|test)/',
        pathNot: '^(api/portal/web/|api/portal/pages\\.ts$|pipeline/domain/traces/span_flags\\.ts$)',
      },
    },
    {
      name: 'nothing-imports-the-pages',
      severity: 'error',
      comment: 'the service serves what the bundler made of them',
      from: { pathNot: '^(api/portal/web|test/unit/portal|test/browser)/' },
      to: { path: '^api/portal/web/' },
    },
    { name: 'no-test-in-product', severity: 'error', from: { pathNot: '^test/' }, to: { path: '^test/' } },
  ],
  options: {
    doNotFollow: { path: 'node_modules' },
    exclude: { path: '^(node_modules|data|\\.tools)' },
    tsPreCompilationDeps: true,
    tsConfig: { fileName: 'tsconfig.json' },
    enhancedResolveOptions: { extensions: ['.ts', '.tsx', '.mjs', '.js'] },
  },
};
