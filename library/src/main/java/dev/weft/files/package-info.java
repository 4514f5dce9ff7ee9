/**
 * Files that are written atomically, and files that only this user can access.
 *
 * <p>Invariants: the name of a temporary file tells its process; it is removed when that process
 * ends, by itself or by the next one that writes there. What {@link dev.weft.files.PrivateFiles}
 * opens was not created, moved or replaced by another user, and is no link.
 */
package dev.weft.files;
