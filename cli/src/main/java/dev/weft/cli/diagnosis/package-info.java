/**
 * What the ranks of a failed run said, and which of them failed first. Invariant: it looks at what
 * was told alone, so it says the same whoever started the ranks.
 */
package dev.weft.cli.diagnosis;
