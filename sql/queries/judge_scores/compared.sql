-- Items of a comparison that the filters of the request keep.
1
/*if changes*/AND change IN {changes:Array(String)}/*end*/
/*if baseline_verdicts*/AND baseline_verdict IN {baseline_verdicts:Array(String)}/*end*/
/*if candidate_verdicts*/AND candidate_verdict IN {candidate_verdicts:Array(String)}/*end*/
