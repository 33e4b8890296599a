// Type-aware lint: the rules that catch what a stream processor really gets wrong (floating promises, unions not exhausted).
import tseslint from 'typescript-eslint';

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
  {
    files: ['api/**/*.ts', 'pipeline/**/*.ts', 'ops/**/*.ts'],
    // The launcher may read its own folder only, and compiles nothing when it ends.
    ignores: ['ops/process/leave.ts', 'ops/clickhouse/launcher.ts', 'ops/check.ts'],
    rules: {
      'no-restricted-properties': ['error', { object: 'process', property: 'exit', message: 'It may hang: ops/process/leave.ts.' }],
    },
  },
);
