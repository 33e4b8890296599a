-- Rows of some clusters; orgs and clusters are pairs by their place.
(org_id, cluster_id) IN (SELECT pair.1, pair.2 FROM (SELECT arrayJoin(arrayZip({orgs:Array(String)}, {clusters:Array(String)})) AS pair))
