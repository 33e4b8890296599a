// Reads the files of ops/deploy, ops/alerts and ops/dashboards for the tests that hold them to the code.
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { parse, parseAllDocuments } from 'yaml';

const ROOT = path.resolve(import.meta.dirname, '../..');

/** Text of a file of the project. */
export const projectFile = (name: string): string => readFileSync(path.join(ROOT, name), 'utf8');

/** Names of the files in a folder of the project. */
export const filesIn = (folder: string): string[] => readdirSync(path.join(ROOT, folder)).sort();

/** The one document of a YAML file, with its merge keys carried out. */
export const yamlFile = (name: string): unknown => parse(projectFile(name), { merge: true });

/** Every document of a YAML file. @throws where one is none */
export function yamlDocuments(name: string): unknown[] {
  return parseAllDocuments(projectFile(name)).map((document) => {
    const [error] = document.errors;
    if (error !== undefined) throw error;
    return document.toJS() as unknown;
  });
}
