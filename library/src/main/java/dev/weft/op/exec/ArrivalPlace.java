package dev.weft.op.exec;

/** Where a rank keeps rows that are not its own. */
public enum ArrivalPlace {
    /** Nowhere: they are read in their owner's memory. */
    NONE,
    /** In gathered A, shard below shard: [M, K]. */
    ROWS,
    /** In gathered A, shard beside shard: [rows, K x ranks]. Shards are equally large. */
    COLUMNS,
    /** In two buffers of one shard each, used in turn; no gathered A exists anywhere. */
    PING_PONG
}
