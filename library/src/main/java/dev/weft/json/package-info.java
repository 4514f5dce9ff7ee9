/**
 * JSON: the one reader and the generators for everything that Weft reads and writes, and records as
 * JSON by their components.
 *
 * <p>Invariant: a text that is not UTF-8, begins with a byte order mark, repeats a name in an
 * object or has anything after its value is refused, in one line that says where.
 */
package dev.weft.json;
