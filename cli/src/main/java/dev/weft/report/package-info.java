/**
 * The run record: what a run was, what it measured and whether it was correct, as plain data and as
 * JSON of the schema {@code weft.run/1}; and what follows from it, as a page and as a trace.
 * Invariants: nothing here runs or measures anything; no host name, user name or path enters a
 * record; pages show facts that are computed here, not in their scripts.
 */
package dev.weft.report;
