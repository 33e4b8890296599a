-- Texts of documents, found by their starts and numbers.
org_id = {org_id:String} AND started_at IN {times:Array(DateTime64(3, 'UTC'))} AND doc IN {docs:Array(UInt64)}
