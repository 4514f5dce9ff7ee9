"""all-MiniLM-L6-v2 by PyTorch's own operations, with weights in bf16.

Usage: torch_peer.py FILE

FILE (safetensors, all fp32) has the weights, the tokens of some sentences and Weft's embeddings of
them. Prints how close PyTorch's are, and sentences/s of four sizes, as operations one by one and as a
CUDA graph. As in GpuSpeed.java, which calls it, a call takes tokens in host memory and gives
embeddings in host memory.
"""

import json
import statistics
import sys
import time

import torch
import torch.nn.functional as F

SIZES = ((1, 16), (1, 128), (64, 16), (64, 128))
ROUNDS = 9
CALLS = 100
HEADS = 12
EPSILON = 1e-12


def read(path):
    with open(path, "rb") as file:
        header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
        data = bytearray(file.read())
    tensors = {}
    for name, entry in header.items():
        if name != "__metadata__":
            begin, end = entry["data_offsets"]
            flat = torch.frombuffer(data, dtype=torch.float32, offset=begin, count=(end - begin) // 4)
            tensors[name] = flat.view(entry["shape"])
    return tensors


class Encoder:
    def __init__(self, tensors):
        def narrowed(tensor):
            return tensor.contiguous().to("cuda", torch.bfloat16)

        def norm(name):
            return narrowed(tensors[name + ".scale"][0]), narrowed(tensors[name + ".shift"][0])

        def dense(*names):
            weight = torch.cat([tensors[name + ".weight"].t() for name in names])
            return narrowed(weight), narrowed(torch.cat([tensors[name + ".bias"][0] for name in names]))

        self.words, self.types = narrowed(tensors["words"]), narrowed(tensors["types"])
        self.positions = narrowed(tensors["positions"])
        self.norm = norm("norm")
        self.layers = []
        while f"{len(self.layers)}.up.weight" in tensors:
            layer = f"{len(self.layers)}."
            self.layers.append(
                {
                    "qkv": dense(layer + "query", layer + "key", layer + "value"),
                    "attention_out": dense(layer + "attention_out"),
                    "attention_norm": norm(layer + "attention_norm"),
                    "up": dense(layer + "up"),
                    "down": dense(layer + "down"),
                    "norm": norm(layer + "norm"),
                }
            )

    def __call__(self, ids):
        """The mean of the last layer over each sentence's tokens."""
        count, tokens = ids.shape
        width = self.words.shape[1]
        x = F.embedding(ids, self.words) + self.types[0] + self.positions[:tokens]
        x = F.layer_norm(x, (width,), *self.norm, EPSILON)
        for layer in self.layers:
            qkv = F.linear(x, *layer["qkv"]).view(count, tokens, 3, HEADS, width // HEADS)
            mixed = F.scaled_dot_product_attention(*qkv.permute(2, 0, 3, 1, 4))
            mixed = mixed.transpose(1, 2).reshape(count, tokens, width)
            x = x + F.linear(mixed, *layer["attention_out"])
            x = F.layer_norm(x, (width,), *layer["attention_norm"], EPSILON)
            hidden = F.gelu(F.linear(x, *layer["up"]))
            x = x + F.linear(hidden, *layer["down"])
            x = F.layer_norm(x, (width,), *layer["norm"], EPSILON)
        return x.mean(1, dtype=torch.float32)


def rate(sentences, call):
    rates = []
    for _ in range(ROUNDS + 1):
        begin = time.perf_counter()
        for _ in range(CALLS):
            call()
        rates.append(sentences * CALLS / (time.perf_counter() - begin))
    return statistics.median(rates[1:])


def captured(encoder, ids):
    """A call that copies tokens to the GPU, launches a graph and copies embeddings back."""
    place = ids.cuda()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        means = encoder(place)

    def call():
        place.copy_(ids)
        graph.replay()
        return means.cpu()

    return call


@torch.inference_mode()
def main():
    tensors = read(sys.argv[1])
    encoder = Encoder(tensors)
    means = encoder(tensors["ids"].long().cuda()).cpu()
    least = F.cosine_similarity(means, tensors["embeddings"]).min().item()
    print(f"PyTorch {torch.__version__}: least cosine similarity with Weft {least:.6f}")
    for sentences, tokens in SIZES:
        ids = torch.randint(1000, 30000, (sentences, tokens))
        eager = rate(sentences, lambda: encoder(ids.cuda()).cpu())
        call = captured(encoder, ids)
        least = F.cosine_similarity(call(), encoder(ids.cuda()).cpu()).min().item()
        graph = rate(sentences, call)
        print(
            f"PyTorch, {sentences}x{tokens}: {eager:.0f} sentences/s, as a graph {graph:.0f}"
            f" (least cosine similarity of the two {least:.6f})"
        )


if __name__ == "__main__":
    main()
