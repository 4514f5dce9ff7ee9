package dev.weft.cuda.exec;

/** Where a rank keeps rows that are not its own. */
public enum ArrivalPlace {
    /** In gathered A, shard below shard: [M, K]. */
    ROWS,
    /** In gathered A, shards side by side: [rows, K x ranks]. All shards have the same size. */
    COLUMNS,
    /** In two buffers of one shard each, used in turn; gathered A is never stored. */
    PING_PONG
}
