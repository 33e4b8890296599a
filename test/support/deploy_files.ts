// Reads the files of ops/deploy, ops/alerts and ops/dashboards for the tests that compare them with
// the code.
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { parse, parseAllDocuments } from 'yaml';

const ROOT = path.resolve(import.meta.dirname, '../..');

/** Returns the text of a file of the project. */
export const projectFile = (name: string): string => readFileSync(path.join(ROOT, name), 'utf8');

/** Returns the names of the files in a folder of the project. */
export const filesIn = (folder: string): string[] => readdirSync(path.join(ROOT, folder)).sort();

/** Parses a YAML file with one document and resolves its merge keys. */
export const yamlFile = (name: string): unknown => parse(projectFile(name), { merge: true });

/**
 * Parses every document of a YAML file.
 * @throws Error if one is invalid
 */
export function yamlDocuments(name: string): unknown[] {
  return parseAllDocuments(projectFile(name)).map((document) => {
    const [error] = document.errors;
    if (error !== undefined) throw error;
    return document.toJS() as unknown;
  });
}
