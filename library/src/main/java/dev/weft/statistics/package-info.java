/** What repeated measurements say. */
package dev.weft.statistics;
