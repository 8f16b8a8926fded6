"""One fit over rows on many machines, to the bit the fit over all of them on one.

The kernel sorts the rows of a task by group and adds up blocks of `BLOCK_ROWS` rows, in order.
Shards hold whole blocks (`layout`) and send the sums of their blocks (`shard`); a driver adds all
sums in the kernel's order and decides (`sweep`). So neither the number of shards nor the place of a
block changes the result.
"""
