// Type-aware lint rules for the typical defects of a stream processor, such as floating promises and switches that miss a case.
import regexp from 'eslint-plugin-regexp';
import tseslint from 'typescript-eslint';

/**
 * Every regular expression of the product takes linear time on any text. The linter can check only literal expressions, so an
 * expression that is built at run time needs an exception below.
 */
export const linearExpressions = {
  files: ['{api,ops,pipeline,schemas,sql}/**/*.{ts,tsx,mjs}'],
  plugins: { regexp },
  rules: {
    'regexp/no-super-linear-backtracking': ['error', { report: 'potential' }],
    'regexp/no-super-linear-move': ['error', { report: 'certain' }],
    'no-restricted-syntax': [
      'error',
      {
        selector:
          ":matches(NewExpression, CallExpression)[callee.name='RegExp']:not([arguments.0.type=/^(Literal|TemplateLiteral|TaggedTemplateExpression)$/])",
        message: 'Use a literal expression, so that the linter can check that it takes linear time.',
      },
    ],
  },
};

/** Bounds on the lines of a file and of a function; blank lines and comments count. A function of a test holds a whole suite. */
export const sizes = [
  { files: ['**/*.{ts,tsx}'], rules: { 'max-lines': ['error', 400] } },
  { files: ['{api,ops,pipeline,schemas,sql}/**/*.{ts,tsx}'], rules: { 'max-lines-per-function': ['error', 70] } },
];

export default tseslint.config(
  { ignores: ['node_modules/', 'data/', '.tools/', 'api/portal/web/client/contract.d.ts', 'api/sdk/src/contract.ts'] },
  {
    files: ['**/*.{ts,tsx}'],
    extends: [...tseslint.configs.strictTypeChecked],
    languageOptions: { parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname } },
    rules: {
      '@typescript-eslint/restrict-template-expressions': ['error', { allowNumber: true }],
      '@typescript-eslint/switch-exhaustiveness-check': 'error',
      '@typescript-eslint/consistent-type-imports': 'error',
      // `const { secret: _, ...rest } = record` takes a field out of a record.
      '@typescript-eslint/no-unused-vars': [
        'error',
        { ignoreRestSiblings: true, varsIgnorePattern: '^_', argsIgnorePattern: '^_' },
      ],
    },
  },
  linearExpressions,
  ...sizes,
  {
    files: ['api/portal/web/**/*.{ts,tsx}'],
    rules: {
      'no-restricted-syntax': [
        'error',
        // The rule above replaces this list for other files; both stand here.
        ...linearExpressions.rules['no-restricted-syntax'].slice(1),
        {
          selector:
            ':matches(JSXAttribute[name.name="dangerouslySetInnerHTML"], MemberExpression[property.name=/^(inner|outer)HTML$/])',
          message: 'Texts of users are data: build elements. The Trusted Types policy of the page refuses HTML text.',
        },
        {
          selector: 'JSXAttribute[name.name="style"] > Literal',
          message: 'style takes an object; fixed styles belong to a CSS module.',
        },
      ],
      'no-restricted-imports': [
        'error',
        {
          name: 'react',
          importNames: ['lazy', 'Suspense'],
          message: 'React shows what follows a fallback 300 ms later at the earliest: use deferred of ui/deferred.tsx.',
        },
      ],
    },
  },
  // Builds expressions from pieces with bounded repetitions; its tests measure their cost.
  { files: ['pipeline/domain/pii/prefix.ts'], rules: { 'no-restricted-syntax': 'off' } },
  {
    files: ['api/**/*.ts', 'pipeline/**/*.ts', 'ops/**/*.ts'],
    // leave.ts wraps process.exit. The launcher may read only its own folder, and neither it nor check.ts compiles code when it exits.
    ignores: ['ops/platform/leave.ts', 'ops/launch/clickhouse/launcher.ts', 'ops/tools/check.ts'],
    rules: {
      'no-restricted-properties': [
        'error',
        { object: 'process', property: 'exit', message: 'process.exit may hang. Use ops/platform/leave.ts.' },
      ],
    },
  },
);
