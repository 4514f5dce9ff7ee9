/**
 * What runs an operator on a GPU: plans as copies on streams, the kernels that multiply, the peers'
 * memory, and the judge of products.
 */
package dev.weft.cuda.exec;
