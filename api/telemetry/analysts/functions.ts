// Which functions analysts of orgs may call. An allow list, so that what a newer engine brings is refused until somebody has looked at it;
// functions.txt holds every function of ClickHouse 26.7 that only computes from its arguments, in bounded time. What is left out, and why, stands here.
import { readFileSync } from 'node:fs';

/** Names and patterns of functions that are left out, by what they do. A test holds them and the allow list against the engine's own list. */
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
    does: 'tells of the server or of the request',
    names:
      /^(FQDN|(full)?hostName|serverUUID|tcpPort|getServer(Port|Setting)|getMacro|getOSKernelVersion|filesystem(Available|Capacity|Unreserved)|showCertificate|buildId|uptime|zookeeperSessionUptime|addressTo\w+|demangle|tid|connection_?id|transaction(ID|\w+Snapshot)|(current|enabled|default)Profiles|hasThreadFuzzer|shard(Num|Count)|getClientHTTPHeader|chdb|(initial_?|current_?)?query_?id|flameGraph|runningConcurrency)$/i,
  },
  {
    does: 'changes something on the server, or holds it up',
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
  { does: "is the engine's own", names: /^__/ },
  {
    // The engine interrupts a query between blocks only, so neither the 60 seconds nor KILL QUERY ends a call. Measured with 26.7 and
    // arguments of a megabyte (each function with up to four arguments of 22 kinds, max_execution_time = 1): these calls went on for
    // more than ten seconds, or for more than a second where the cost grows with the square of the arguments or with a number.
    // Searches with ordinary uses stay on the list although a pattern of half a megabyte makes them take minutes: ilike, countMatches,
    // countSubstrings, multiSearch*. Patterns of multiMatch* are bounded by settings (sql/analysts/org_views.ts).
    does: 'can hold the engine up by one call',
    names:
      /^((edit|levenshtein|damerauLevenshtein)Distance(UTF8)?|arrayLevenshteinDistance(Weighted)?|arraySimilarity|jaro(Winkler)?Similarity|h3(kRing|HexRing|Line|ToChildren|PolygonToCells(WithContainment)?)|polygons\w+|geometryIntersect(Cartesian|Spherical)|pointInPolygon|sparseGrams(Hashes)?(UTF8)?|kolmogorovSmirnovTest|svg|printf|prettyPrintJSON)$/i,
  },
  {
    // Measured: a text of 200,000 nested brackets exhausts the stack, and the engine's process ends.
    does: "can end the engine's process",
    names: /^JSONMergePatch$/i,
  },
];

/** Parts of the language that the parser writes as functions and that are none. */
const SYNTAX = ['lambda', 'exists', 'untuple', 'grouping'];

/** What may follow the name of an aggregate function: sumIf, countDistinctIf. */
const COMBINATORS =
  'SimpleState OrDefault Distinct Resample ForEach ArgMax ArgMin OrNull Tuple Merge State Array Null Map If'
    .toLowerCase()
    .split(' ');
/** No query that makes sense strings more of them together. */
const COMBINATORS_MAX = 4;

/** Table functions that make rows from their arguments alone. */
const TABLE_FUNCTIONS = new Set(['numbers', 'numbers_mt', 'zeros', 'zeros_mt', 'generateseries', 'generate_series']);

const ALLOWED = new Set([
  ...readFileSync(new URL('./functions.txt', import.meta.url), 'utf8')
    .trim()
    .toLowerCase()
    .split('\n'),
  ...SYNTAX,
]);

/** Whether analysts may call it, in whatever case; with the combinators of an aggregate function behind its name. */
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

/** Why analysts may not call it. */
export function whyLeftOut(name: string): string {
  const does = LEFT_OUT.find(({ names }) => names.test(name))?.does;
  return does === undefined ? 'it is not on the list of functions for analysts' : `it ${does}`;
}
