/**
 * Files that are this user's alone.
 *
 * <p>Invariant: nothing is read or written through a name that another user could have made, moved
 * or replaced, or through a link.
 */
package dev.weft.files;
