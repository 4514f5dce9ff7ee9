/** Products that are summed over ranks: how their blocks travel, and what runs a call. */
package dev.weft.cuda.sums;
