// Names the data that each route answers with, for the tools that call it. A tool can call only the
// routes of this table.
import type { Budget } from '../control/budgets/schema.ts';
import type { DatasetInfo } from '../control/datasets/schema.ts';
import type { EvalItem } from '../control/evals/schema.ts';
import type { JudgeStats, LiveScore } from '../control/judges/score_schema.ts';
import type { PromptItem } from '../control/prompts/schema.ts';
import type { ScoreItem, TraceItem } from '../http/trace_items.ts';
import type { AnalyticsResultBody } from '../telemetry/analytics/schema.ts';
import type { AnomalyItem, ForecastAnswer, Summary } from '../telemetry/costs/schema.ts';
import type { IncidentDetail, IncidentItem } from '../telemetry/incidents/schema.ts';
import type { GivenScore } from '../telemetry/scores/schema.ts';
import type { SnippetHit } from '../telemetry/spans/schema.ts';
import type { Conversation } from '../telemetry/trace/conversation_schema.ts';
import type { Outline, SpanDetail } from '../telemetry/trace/schema.ts';
import type { Replayed } from '../telemetry/traces/compare_schema.ts';
import type { Preview } from '../telemetry/traces/preview_schema.ts';

interface ComparedField {
  field: string;
  baseline: unknown;
  candidate: unknown;
  delta_percent: number | null;
  differs: boolean;
}

interface AnalyticsView {
  name: string;
  measures: { name: string; unit: string; aggs: string[] }[];
  dimensions: { name: string }[];
  filters: string[];
}

export interface RouteAnswers {
  compareTraces: { fields: ComparedField[] };
  createDatasetVersion: DatasetInfo;
  createPrompt: PromptItem;
  getAnalyticsSchema: { views: AnalyticsView[] };
  getBudget: Budget;
  getCostForecast: ForecastAnswer;
  getCostSummary: Summary;
  getEval: EvalItem;
  getIncident: IncidentDetail;
  getJudgeStats: JudgeStats;
  getPrompt: PromptItem & { versions: { version: string }[] };
  getSpan: SpanDetail;
  getTraceConversation: Conversation;
  getTraceOutline: Outline;
  getTracePreviews: Preview[];
  giveScore: GivenScore;
  listAnomalies: AnomalyItem[];
  listIncidents: IncidentItem[];
  listLiveScores: LiveScore[];
  listPrompts: PromptItem[];
  listScores: ScoreItem[];
  listTraces: TraceItem[];
  queryAnalytics: AnalyticsResultBody;
  replayTrace: Replayed;
  searchSpans: SnippetHit[];
}
