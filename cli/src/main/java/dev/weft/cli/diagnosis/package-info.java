/**
 * What the ranks of a failed run reported, and which of them failed first. Invariant: it uses only
 * the reports, so the result does not depend on who started the ranks.
 */
package dev.weft.cli.diagnosis;
