// Type-aware lint: the rules that catch what a stream processor really gets wrong (floating promises, unions not exhausted).
import regexp from 'eslint-plugin-regexp';
import tseslint from 'typescript-eslint';

/**
 * No expression of the product may take more than linear time, whatever text it meets. Only what is written out can be checked, so
 * an expression that is put together at run time needs an exception below.
 */
export const linearExpressions = {
  files: ['{api,ops,pipeline,schemas,sql}/**/*.{ts,mjs}'],
  plugins: { regexp },
  rules: {
    'regexp/no-super-linear-backtracking': ['error', { report: 'potential' }],
    'regexp/no-super-linear-move': ['error', { report: 'certain' }],
    'no-restricted-syntax': [
      'error',
      {
        selector:
          ":matches(NewExpression, CallExpression)[callee.name='RegExp']:not([arguments.0.type=/^(Literal|TemplateLiteral|TaggedTemplateExpression)$/])",
        message: 'Write the expression out, so that the linter can check that its time is linear.',
      },
    ],
  },
};

/** Bounds on the lines of a file and of a function; blank lines and comments count. A function of a test holds a whole suite. */
export const sizes = [
  { files: ['**/*.ts'], rules: { 'max-lines': ['error', 400] } },
  { files: ['{api,ops,pipeline,schemas,sql}/**/*.ts'], rules: { 'max-lines-per-function': ['error', 70] } },
];

export default tseslint.config(
  { ignores: ['node_modules/', 'data/', '.tools/'] },
  {
    files: ['**/*.ts'],
    extends: [...tseslint.configs.strictTypeChecked],
    languageOptions: { parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname } },
    rules: {
      '@typescript-eslint/restrict-template-expressions': ['error', { allowNumber: true }],
      '@typescript-eslint/switch-exhaustiveness-check': 'error',
      '@typescript-eslint/consistent-type-imports': 'error',
    },
  },
  linearExpressions,
  ...sizes,
  // Builds expressions of pieces whose repetitions are bounded; its tests count what they cost.
  { files: ['pipeline/domain/pii/prefix.ts'], rules: { 'no-restricted-syntax': 'off' } },
  {
    files: ['api/**/*.ts', 'pipeline/**/*.ts', 'ops/**/*.ts'],
    // The launcher may read its own folder only, and compiles nothing when it ends.
    ignores: ['ops/platform/leave.ts', 'ops/launch/clickhouse/launcher.ts', 'ops/tools/check.ts'],
    rules: {
      'no-restricted-properties': [
        'error',
        { object: 'process', property: 'exit', message: 'It may hang: ops/platform/leave.ts.' },
      ],
    },
  },
);
