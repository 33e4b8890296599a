-- Number of shards that the server knows of a cluster.
SELECT uniqExact(shard_num) AS shards FROM system.clusters WHERE cluster = {cluster:String}
