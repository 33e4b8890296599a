// Finds the documents and memories that a span searched, ranked, stored or found. OpenInference
// spreads documents over numbered attributes; the GenAI conventions have the records of a memory
// in one. In: the attributes of a span. Out: a text that becomes the prompt or the response, and the
// names of the attributes that it was made of.
import { isFields, type Fields } from './draft.ts';
import { itemsUnder, textOf } from './otlp_parts.ts';

interface Found {
  text: string;
  used: readonly string[];
}

const RECORDS = 'gen_ai.memory.records';
const QUERY = 'reranker.query';

/** Returns the query with the documents to rank, or the memories to store; null for neither. */
export function documentsGiven(attributes: Fields): Found | null {
  const records = attributes[RECORDS];
  if (records !== undefined && !isMemorySearch(attributes)) return { text: textOf(records), used: [RECORDS] };
  const query = attributes[QUERY];
  const ranked = listed(attributes, 'reranker.input_documents.');
  if (ranked === null) return query === undefined ? null : { text: textOf(query), used: [QUERY] };
  const used = query === undefined ? ranked.used : [...ranked.used, QUERY];
  return { text: JSON.stringify({ query, documents: ranked.documents }), used };
}

/** Returns the documents or memories that were found, best first; null for none. */
export function documentsFound(attributes: Fields): Found | null {
  const records = attributes[RECORDS];
  if (records !== undefined && isMemorySearch(attributes)) return { text: textOf(records), used: [RECORDS] };
  const found = listed(attributes, 'retrieval.documents.') ?? listed(attributes, 'reranker.output_documents.');
  return found === null ? null : { text: JSON.stringify(found.documents), used: found.used };
}

const isMemorySearch = (attributes: Fields): boolean => attributes['gen_ai.operation.name'] === 'search_memory';

function listed(attributes: Fields, prefix: string): { documents: unknown[]; used: readonly string[] } | null {
  if (!Object.hasOwn(attributes, 'openinference.span.kind')) return null;
  const found = itemsUnder(attributes, prefix);
  if (found === null) return null;
  const documents = found.items.map((item) => (isFields(item) && isFields(item['document']) ? item['document'] : item));
  return { documents, used: found.keys };
}
