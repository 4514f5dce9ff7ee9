/** Waits for threads. */
package dev.weft.threads;
