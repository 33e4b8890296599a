-- Rows of the given clusters. The lists of organizations and clusters are parallel.
(org_id, cluster_id) IN (SELECT pair.1, pair.2 FROM (SELECT arrayJoin(arrayZip({orgs:Array(String)}, {clusters:Array(String)})) AS pair))
