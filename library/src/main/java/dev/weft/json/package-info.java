/**
 * JSON: the one reader and the generators of all that Weft reads and writes.
 *
 * <p>Invariant: a text that is not UTF-8, begins with a byte order mark, has a name twice in an
 * object or anything behind its value is refused, in one line that says where.
 */
package dev.weft.json;
