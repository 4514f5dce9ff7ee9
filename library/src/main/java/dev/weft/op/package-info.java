/**
 * The operators: each prepares a plan once and runs it many times over any fabric.
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
 * <p>Invariants. Calls are numbered; call e uses half e mod 2 of every buffer (except for ping-pong
 * buffers, which are released within a call). A rank's start word says which call it has started:
 * its shard of that call is then in place, and it has finished all earlier calls. Hence the
 * <em>reuse rule</em>: a rank starts call e only once every peer has started call e-1; whatever is
 * in half e mod 2 belongs to call e-2, which all ranks have finished. So a fast rank may be one
 * whole call ahead, and no rank overwrites what a peer still reads. Progress flags hold the number
 * of the call that set them; they are never reset.
 */
package dev.weft.op;
