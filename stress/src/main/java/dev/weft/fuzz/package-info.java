/**
 * Readers of outside bytes, fed with damaged ones. Invariant: a target hands its input to one of
 * Weft's own readers as a user would and judges nothing; the {@link dev.weft.fuzz.Oracle} alone
 * says what is a finding.
 */
package dev.weft.fuzz;
