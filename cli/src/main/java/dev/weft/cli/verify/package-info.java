/** Whether a product is correct: bit for bit against a reference, and that against float64. */
package dev.weft.cli.verify;
