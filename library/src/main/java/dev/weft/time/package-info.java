/** How long to wait: deadlines in nanoseconds, and which time counts towards them. No threads. */
package dev.weft.time;
