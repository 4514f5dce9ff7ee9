/**
 * How callers want shards to be cut, as given to builders and options. Invariant: as pure as {@link
 * dev.weft.plan}.
 */
package dev.weft.plan.cut;
