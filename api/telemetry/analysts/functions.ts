// The functions that analysts may call. It is an allow list, so that functions of a newer engine
// are rejected until somebody has reviewed them: functions.txt lists every function of ClickHouse
// 26.7 that only computes from its arguments, in bounded time. LEFT_OUT below lists the excluded
// functions with the reasons.
import { readFileSync } from 'node:fs';

/**
 * Names and patterns of excluded functions, by what they do. A test compares them and the allow
 * list with the engine's own list.
 */
export const LEFT_OUT: readonly { does: string; names: RegExp }[] = [
  {
    does: 'reads files or models on the server',
    names: /^(file|catboostEvaluate|evalMLMethod|naiveBayesClassifier.*|region(Hierarchy|In|To\w+))$/i,
  },
  { does: 'asks other hosts', names: /^ai(Classify|Embed|Extract|Generate|Translate)$/i },
  {
    does: 'reads tables, dictionaries or indexes by name',
    names:
      /^(dict(Get|Has|IsIn).*|joinGet(OrNull)?|hasColumnInTable|indexHint|isMergeTreePartCoveredBy|mergeTreePartInfo|getMergeTreeSetting|getMaxTableNameLengthForDatabase)$/i,
  },
  {
    does: 'reveals details of the server or of the request',
    names:
      /^(FQDN|(full)?hostName|serverUUID|tcpPort|getServer(Port|Setting)|getMacro|getOSKernelVersion|filesystem(Available|Capacity|Unreserved)|showCertificate|buildId|uptime|zookeeperSessionUptime|addressTo\w+|demangle|tid|connection_?id|transaction(ID|\w+Snapshot)|(current|enabled|default)Profiles|hasThreadFuzzer|shard(Num|Count)|getClientHTTPHeader|chdb|(initial_?|current_?)?query_?id|flameGraph|runningConcurrency)$/i,
  },
  {
    does: 'changes something on the server, or blocks it',
    names: /^(logTrace|generateSerialID|sleep(EachRow)?|aggThrow)$/i,
  },
  {
    does: 'writes by a schema that may be a file',
    names: /^(formatRow(NoNewline)?|groupFormat|structureTo(CapnProto|Protobuf)Schema)$/i,
  },
  {
    does: 'keeps state between queries',
    names:
      /^timeSeries(CopyTags?|ExtractTag|FromGrid|GroupTo\w+|IdTo\w+|JoinTags|Range|Remove\w+|ReplaceTag|StoreTags|TagsGroupToTags|TagsToGroup|ThrowDuplicateSeriesIf)$/i,
  },
  { does: 'is internal to the engine', names: /^__/ },
  {
    // The engine interrupts a query only between blocks, so neither the limit of 60 seconds nor
    // KILL QUERY ends a call. Measured with 26.7 and arguments of one megabyte (each function with
    // up to four arguments of 22 kinds, max_execution_time = 1): these calls ran for more than ten
    // seconds, or for more than one second where the cost grows with the square of the arguments or
    // with a number. Search functions with common uses stay on the list, although a pattern of half
    // a megabyte makes them run for minutes: ilike, countMatches, countSubstrings, multiSearch*.
    // Patterns of multiMatch* are bounded by settings (sql/analysts/org_views.ts).
    does: 'can block the engine with one call',
    names:
      /^((edit|levenshtein|damerauLevenshtein)Distance(UTF8)?|arrayLevenshteinDistance(Weighted)?|arraySimilarity|jaro(Winkler)?Similarity|h3(kRing|HexRing|Line|ToChildren|PolygonToCells(WithContainment)?)|polygons\w+|geometryIntersect(Cartesian|Spherical)|pointInPolygon|sparseGrams(Hashes)?(UTF8)?|kolmogorovSmirnovTest|svg|printf|prettyPrintJSON)$/i,
  },
  {
    // Measured: a text of 200,000 nested brackets exhausts the stack and ends the engine's process.
    does: "can end the engine's process",
    names: /^JSONMergePatch$/i,
  },
];

/** Parts of the language that the parser prints as functions. */
const SYNTAX = ['lambda', 'exists', 'untuple', 'grouping'];

/** Combinators that may follow the name of an aggregate function: sumIf, countDistinctIf. */
const COMBINATORS =
  'SimpleState OrDefault Distinct Resample ForEach ArgMax ArgMin OrNull Tuple Merge State Array Null Map If'
    .toLowerCase()
    .split(' ');
/** Maximum combinators after one name; no useful query has more. */
const COMBINATORS_MAX = 4;

/** Table functions that generate rows from their arguments alone. */
const TABLE_FUNCTIONS = new Set(['numbers', 'numbers_mt', 'zeros', 'zeros_mt', 'generateseries', 'generate_series']);

const ALLOWED = new Set([
  ...readFileSync(new URL('./functions.txt', import.meta.url), 'utf8')
    .trim()
    .toLowerCase()
    .split('\n'),
  ...SYNTAX,
]);

/**
 * Returns whether analysts may call a function, ignoring case and the combinators of an aggregate
 * function.
 */
export function isAllowedFunction(name: string): boolean {
  let base = name.toLowerCase();
  for (let taken = 0; taken <= COMBINATORS_MAX; taken++) {
    if (ALLOWED.has(base)) return true;
    const combinator = COMBINATORS.find((word) => base.endsWith(word));
    if (combinator === undefined) return false;
    base = base.slice(0, -combinator.length);
  }
  return false;
}

export const isAllowedTableFunction = (name: string): boolean => TABLE_FUNCTIONS.has(name.toLowerCase());

/** Returns the reason why analysts may not call a function. */
export function whyLeftOut(name: string): string {
  const does = LEFT_OUT.find(({ names }) => names.test(name))?.does;
  return does === undefined ? 'it is not on the list of functions for analysts' : `it ${does}`;
}
