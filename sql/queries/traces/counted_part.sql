-- Condition for one block of rows in `share`, which stands for that many; of the others no column is read. A block is a
-- granule of the table, so it holds traces of one time, and each part begins with another one. The two rows of a pair may
-- be in different blocks, which cancels out in the mean.
/*if share*/AND (intDiv(_part_offset, 2048) + _part_index) % {share:UInt32} = 0/*end*/
