/**
 * Files that are written atomically, and files that only this user can access.
 *
 * <p>Invariants: the name of a temporary file contains its process; it is removed when that process
 * ends, or by the next one that writes there. What {@link dev.weft.files.PrivateFiles} opens was
 * not created, moved or replaced by another user, and is not a link.
 */
package dev.weft.files;
