/**
 * The run record: what a run was, what it measured and whether it was right, as plain data, and as
 * JSON of the schema {@code weft.run/1}; and what follows from it, as a page and as a trace.
 * Invariant: nothing here runs or measures anything, no host name, user name or path enters a
 * record, and pages are drawn from facts that are found here, not in their scripts.
 */
package dev.weft.report;
