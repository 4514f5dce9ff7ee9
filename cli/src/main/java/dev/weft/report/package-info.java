/**
 * The run record: what a run was, what it measured and whether it was right, as plain data, and as
 * JSON of the schema {@code weft.run/1}. Invariant: nothing here runs or measures anything, and no
 * host name, user name or path enters a record.
 */
package dev.weft.report;
