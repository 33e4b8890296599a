-- The number of traces that a counted one stands for.
/*if share*/* {share:UInt32}/*end*/
