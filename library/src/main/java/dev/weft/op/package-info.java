/**
 * The operators: they prepare a plan once and run it many times over whatever fabric they are
 * given.
 *
 * {@snippet :
 * static List<Float> lastElements(Matrix a, Matrix b) {
 *     Shards shards = Shards.of(3, 0, 2); // rows of A on each rank
 *     try (World world = World.threads(3)) {
 *         return world.call(
 *                 fabric -> {
 *                     int rank = fabric.rank();
 *                     Matrix shard = a.rows(shards.firstRow(rank), shards.rows(rank));
 *                     try (AllGatherMatmul op =
 *                             AllGatherMatmul.on(fabric).a(shards, a.dtype()).b(b).prepare()) {
 *                         Matrix c = op.call(shard).product(); // as often as you like
 *                         return c.get(c.rows() - 1, c.cols() - 1);
 *                     }
 *                 });
 *     }
 * }
 * }
 *
 * <p>Invariants. Calls are numbered; call e uses half e mod 2 of every buffer (ping-pong buffers,
 * which are given back within a call, excepted). A rank's start word says which call it has
 * started: by then its shard of that call lies in place, and it has finished with everything of the
 * calls before. Hence the <em>reuse rule</em>: a rank starts call e only once every peer has
 * started call e-1; whatever lies in half e mod 2 belongs to call e-2, which all have finished. So
 * a fast rank may be one whole call ahead, and nobody overwrites what a peer still reads. Progress
 * flags hold the number of the call that set them; they are never reset.
 */
package dev.weft.op;
