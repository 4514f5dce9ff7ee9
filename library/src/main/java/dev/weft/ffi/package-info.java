/**
 * Native calls, bound by hand through the foreign-function API: one small file per library, a
 * handful of symbols each. Invariant: nothing here is required to load Weft; a missing library or
 * symbol is reported by whoever needs it.
 */
package dev.weft.ffi;
