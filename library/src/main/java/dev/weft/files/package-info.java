/**
 * Files that are written whole or not at all, and files that are this user's alone.
 *
 * <p>Invariants: a file in the making has a name that tells its process, and is removed when that
 * ends, by itself or by whoever writes there next. What {@link dev.weft.files.PrivateFiles} opens
 * was not made, moved or replaced by another user, and is no link.
 */
package dev.weft.files;
