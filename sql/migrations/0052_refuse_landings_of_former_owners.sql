-- A constraint refuses landings of former owners. Before, a subquery of each landing left out their rows, so that all rows had to pass a
-- SELECT; now they go into their table as they come, which takes half the CPU time of a small landing.
--
-- Epochs that newer fences have overtaken. The table is in memory. One that is new, because the server has just started, refuses every
-- landing until a worker has completed it from landing_fences and says so by a row of partition 65532 (sql/stores/landing_fences.ts).
CREATE TABLE IF NOT EXISTS fenced_epochs (
  partition UInt16,
  epoch UInt64,
  is_fenced UInt8
)
ENGINE = Join(ANY, LEFT, partition, epoch)
SETTINGS persistent = 0;

-- Query ids of landings whose answer was lost. In memory, and completed together with the epochs.
CREATE TABLE IF NOT EXISTS given_up_statements (
  statement String,
  is_given_up UInt8
)
ENGINE = Join(ANY, LEFT, statement)
SETTINGS persistent = 0;

-- Both follow landing_fences, which workers of older versions write too. The fences of before are read under another name, because a view
-- has the inserted rows in place of its table. Of two fences that are raised at the same time, neither may see the other here; a worker
-- therefore reads all of them after its own.
CREATE MATERIALIZED VIEW IF NOT EXISTS fenced_epochs_mv TO fenced_epochs AS
SELECT other.partition AS partition, least(raised.epoch, other.epoch) AS epoch, 1 AS is_fenced
FROM (SELECT partition, epoch FROM landing_fences) AS raised
INNER JOIN (SELECT partition, epoch FROM merge(currentDatabase(), '^landing_fences$')) AS other ON other.partition = raised.partition
WHERE raised.epoch != other.epoch AND raised.partition < 65533;

CREATE MATERIALIZED VIEW IF NOT EXISTS given_up_statements_mv TO given_up_statements AS
SELECT f.worker_id AS statement, 1 AS is_given_up
FROM landing_fences AS f
WHERE f.partition = 65534;

-- A landing names its partitions and their epochs in log_comment, after its own name: land_spans [(0,4),(1,7)]. Other statements, and the
-- landings of older versions, pass: those leave out the rows of former owners themselves.
ALTER TABLE spans ADD CONSTRAINT IF NOT EXISTS landed_by_owner CHECK
  NOT match(getSetting('log_comment'), '^land_[a-z_]+ \\[') OR (
    has(
      arrayMap(
        owned -> owned.1,
        arrayFilter(
          owned -> joinGet('fenced_epochs', 'is_fenced', owned.1, owned.2) = 0,
          CAST(concat('[', extract(getSetting('log_comment'), '\\[(.*)\\]$'), ']'), 'Array(Tuple(UInt16, UInt64))')
        )
      ),
      partition
    )
    AND joinGet('fenced_epochs', 'is_fenced', toUInt16(65532), toUInt64(0)) = 1
    AND joinGet('given_up_statements', 'is_given_up', queryID()) = 0
  );
ALTER TABLE span_texts_recent ADD CONSTRAINT IF NOT EXISTS landed_by_owner CHECK
  NOT match(getSetting('log_comment'), '^land_[a-z_]+ \\[') OR (
    has(
      arrayMap(
        owned -> owned.1,
        arrayFilter(
          owned -> joinGet('fenced_epochs', 'is_fenced', owned.1, owned.2) = 0,
          CAST(concat('[', extract(getSetting('log_comment'), '\\[(.*)\\]$'), ']'), 'Array(Tuple(UInt16, UInt64))')
        )
      ),
      partition
    )
    AND joinGet('fenced_epochs', 'is_fenced', toUInt16(65532), toUInt64(0)) = 1
    AND joinGet('given_up_statements', 'is_given_up', queryID()) = 0
  );
ALTER TABLE usage_events ADD CONSTRAINT IF NOT EXISTS landed_by_owner CHECK
  NOT match(getSetting('log_comment'), '^land_[a-z_]+ \\[') OR (
    has(
      arrayMap(
        owned -> owned.1,
        arrayFilter(
          owned -> joinGet('fenced_epochs', 'is_fenced', owned.1, owned.2) = 0,
          CAST(concat('[', extract(getSetting('log_comment'), '\\[(.*)\\]$'), ']'), 'Array(Tuple(UInt16, UInt64))')
        )
      ),
      partition
    )
    AND joinGet('fenced_epochs', 'is_fenced', toUInt16(65532), toUInt64(0)) = 1
    AND joinGet('given_up_statements', 'is_given_up', queryID()) = 0
  );
ALTER TABLE traces ADD CONSTRAINT IF NOT EXISTS landed_by_owner CHECK
  NOT match(getSetting('log_comment'), '^land_[a-z_]+ \\[') OR (
    has(
      arrayMap(
        owned -> owned.1,
        arrayFilter(
          owned -> joinGet('fenced_epochs', 'is_fenced', owned.1, owned.2) = 0,
          CAST(concat('[', extract(getSetting('log_comment'), '\\[(.*)\\]$'), ']'), 'Array(Tuple(UInt16, UInt64))')
        )
      ),
      partition
    )
    AND joinGet('fenced_epochs', 'is_fenced', toUInt16(65532), toUInt64(0)) = 1
    AND joinGet('given_up_statements', 'is_given_up', queryID()) = 0
  );
ALTER TABLE judge_scores ADD CONSTRAINT IF NOT EXISTS landed_by_owner CHECK
  NOT match(getSetting('log_comment'), '^land_[a-z_]+ \\[') OR (
    has(
      arrayMap(
        owned -> owned.1,
        arrayFilter(
          owned -> joinGet('fenced_epochs', 'is_fenced', owned.1, owned.2) = 0,
          CAST(concat('[', extract(getSetting('log_comment'), '\\[(.*)\\]$'), ']'), 'Array(Tuple(UInt16, UInt64))')
        )
      ),
      partition
    )
    AND joinGet('fenced_epochs', 'is_fenced', toUInt16(65532), toUInt64(0)) = 1
    AND joinGet('given_up_statements', 'is_given_up', queryID()) = 0
  );

-- Landings send the columns of traces as they are, without those that follow from others.
ALTER TABLE traces MODIFY COLUMN trace_key DEFAULT sipHash64(trace_id);
ALTER TABLE traces MODIFY COLUMN version DEFAULT log_seq;
