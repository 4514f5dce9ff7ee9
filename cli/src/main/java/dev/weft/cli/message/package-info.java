/**
 * What ranks' processes tell the command that has started them: records, as bytes and as marked
 * lines. Invariant: bytes and lines that are none of these are refused, never half read.
 */
package dev.weft.cli.message;
