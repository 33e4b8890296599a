// Imports point one way: domain < stages < runtime < main, and domain < api slices < main. Only the mains wire across.
/** @type {import('dependency-cruiser').IConfiguration} */
module.exports = {
  forbidden: [
    { name: 'no-cycles', severity: 'error', from: {}, to: { circular: true, viaOnly: { dependencyTypesNot: ['type-only'] } } },
    {
      name: 'domain-is-pure',
      severity: 'error',
      comment: 'domain knows no I/O: only itself, types and the shapes of the formats',
      from: { path: '^pipeline/domain/' },
      to: { path: '^(api|ops|sql|test|pipeline/(?!domain/)|schemas/codec)', dependencyTypesNot: ['type-only'] },
    },
    {
      name: 'stages-know-domain-only',
      severity: 'error',
      from: { path: '^pipeline/stages/' },
      to: { path: '^(api|ops|sql|test|pipeline/(runtime|jobs|delivery|main|topology))', dependencyTypesNot: ['type-only'] },
    },
    { name: 'runtime-knows-no-main', severity: 'error', from: { path: '^pipeline/runtime/' }, to: { path: '^(api/|test/|pipeline/main)' } },
    { name: 'pipeline-knows-no-api', severity: 'error', from: { path: '^pipeline/(?!main)' }, to: { path: '^api/' } },
    {
      name: 'api-knows-domain-only',
      severity: 'error',
      from: { path: '^api/' },
      to: { path: '^(test/|pipeline/(?!domain/))', dependencyTypesNot: ['type-only'] },
    },
    {
      name: 'slices-stand-alone',
      severity: 'error',
      comment: 'what slices share is the edge (api/http) or a rule (pipeline/domain); api/wiring is where they meet',
      from: { path: '^api/(?!(?:http|wiring)/)([^/]+)/' },
      to: { path: '^api/(?!http/)([^/]+)/', pathNot: '^api/$1/' },
    },
    { name: 'edge-knows-no-slice', severity: 'error', from: { path: '^api/http/' }, to: { path: '^api/(?!http/)' } },
    {
      name: 'leaves',
      severity: 'error',
      from: { path: '^(ops|sql|schemas)/', pathNot: '^ops/(start|demo/)' },
      to: { path: '^(api|pipeline|test)/', dependencyTypesNot: ['type-only'] },
    },
    { name: 'sql-and-schemas-stand-alone', severity: 'error', from: { path: '^(sql|schemas)/' }, to: { path: '^ops/' } },
    { name: 'no-test-in-product', severity: 'error', from: { pathNot: '^test/' }, to: { path: '^test/' } },
  ],
  options: {
    doNotFollow: { path: 'node_modules' },
    exclude: { path: '^(node_modules|data|\\.tools)' },
    tsPreCompilationDeps: true,
    tsConfig: { fileName: 'tsconfig.json' },
    enhancedResolveOptions: { extensions: ['.ts', '.mjs', '.js'] },
  },
};
