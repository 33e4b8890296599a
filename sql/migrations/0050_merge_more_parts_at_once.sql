-- How often a row is merged depends on how many parts a merge joins. The engine weighs the age of parts against merge_selector_base, and
-- so merged few of them while events arrived: in ten minutes at 9,000 events a second each text was merged four times. With at least ten
-- parts in a merge (eight of spans and traces, which arrive in many small parts) each is merged about twice. Weeks that get no more rows
-- still become one part.
ALTER TABLE span_texts MODIFY SETTING min_parts_to_merge_at_once = 10, merge_selector_base = 10;
ALTER TABLE span_words MODIFY SETTING min_parts_to_merge_at_once = 10, merge_selector_base = 10;
ALTER TABLE spans MODIFY SETTING min_parts_to_merge_at_once = 8, merge_selector_base = 8;
ALTER TABLE traces MODIFY SETTING min_parts_to_merge_at_once = 8, merge_selector_base = 8;
