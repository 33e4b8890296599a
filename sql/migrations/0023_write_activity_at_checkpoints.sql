-- Workers write when agents were heard of last by themselves, once for each checkpoint: the view made a part for each landing.
DROP VIEW IF EXISTS agent_activity_mv;
