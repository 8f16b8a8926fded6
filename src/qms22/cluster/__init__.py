"""One fit over rows that lie apart, in shards, with the bits of a fit over all of them.

The kernel sorts the rows of a task by group and adds up blocks of `BLOCK_ROWS` of them, in order.
Shards hold whole blocks (`_layout`): each sends its blocks' sums (`_shard`), and a driver adds all
of them in that same order and decides (`_sweep`). So it does not matter how many shards there are,
nor which one holds a block.
"""
