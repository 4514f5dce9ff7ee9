/**
 * Messages of ranks' processes to the command that started them: records, as bytes and as marked
 * lines. Invariant: other bytes and lines are refused, never read in part.
 */
package dev.weft.cli.message;
