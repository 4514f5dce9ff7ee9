/**
 * What runs an operator's plan on a GPU: its copies on streams, what they wait for, the memory of
 * the ranks, and what a call's times tell.
 */
package dev.weft.cuda.exec;
