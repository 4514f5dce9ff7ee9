"""A decoder of the Llama architecture by PyTorch's own operations, with random weights in bf16.

Usage: torch_peer.py WIDTH HIDDEN LAYERS HEADS KEY_HEADS VOCABULARY PROMPT TOKENS

Prints tokens/s of a prompt read at once, of tokens one by one, and of these as a CUDA graph. Times do
not depend on the weights. GpuSpeed.java calls it.
"""

import statistics
import sys
import time

import torch
import torch.nn.functional as F

ROUNDS = 5


class Decoder:
    def __init__(self, width, hidden, layers, heads, key_heads, vocabulary, longest):
        def random(*shape):
            return (torch.randn(*shape, device="cuda") * shape[-1] ** -0.5).to(torch.bfloat16)

        self.heads, self.key_heads, self.head = heads, key_heads, width // heads
        columns = key_heads * self.head
        self.embedding = random(vocabulary, width)
        self.layers = [
            {
                "qkv": random(width + 2 * columns, width),
                "out": random(width, width),
                "gate": random(hidden, width),
                "up": random(hidden, width),
                "down": random(width, hidden),
                "keys": torch.zeros(1, key_heads, longest, self.head, device="cuda", dtype=torch.bfloat16),
                "values": torch.zeros(1, key_heads, longest, self.head, device="cuda", dtype=torch.bfloat16),
            }
            for _ in range(layers)
        ]
        self.norm = torch.ones(width, device="cuda", dtype=torch.bfloat16)
        self.logits = random(vocabulary, width)
        slower = 10000.0 ** (-torch.arange(0, self.head, 2, device="cuda") / self.head)
        angles = torch.arange(longest, device="cuda")[:, None] * slower
        self.cosines, self.sines = angles.cos(), angles.sin()

    def turned(self, x, places):
        cosine, sine = self.cosines[places], self.sines[places]
        first, second = x.float()[..., 0::2], x.float()[..., 1::2]
        pairs = torch.stack((first * cosine - second * sine, first * sine + second * cosine), -1)
        return pairs.flatten(-2).to(torch.bfloat16)

    def call(self, ids, places, mask):
        """The likeliest token after the last one."""
        x = self.embedding[ids].float()
        shape = (self.norm.numel(),)
        for layer in self.layers:
            row = F.rms_norm(x.to(torch.bfloat16), shape, self.norm, 1e-5)
            qkv = F.linear(row, layer["qkv"]).view(1, len(ids), -1, self.head).transpose(1, 2)
            query, key, value = qkv.split((self.heads, self.key_heads, self.key_heads), 1)
            layer["keys"].index_copy_(2, places, self.turned(key, places))
            layer["values"].index_copy_(2, places, value)
            mixed = F.scaled_dot_product_attention(
                self.turned(query, places), layer["keys"], layer["values"], mask, enable_gqa=True
            )
            mixed = mixed.transpose(1, 2).reshape(len(ids), -1)
            x = x + F.linear(mixed, layer["out"])
            row = F.rms_norm(x.to(torch.bfloat16), shape, self.norm, 1e-5)
            hidden = F.silu(F.linear(row, layer["gate"])) * F.linear(row, layer["up"])
            x = x + F.linear(hidden, layer["down"])
        last = F.rms_norm(x[-1:].to(torch.bfloat16), shape, self.norm, 1e-5)
        return F.linear(last, self.logits).float().argmax(-1)


def rate(count, what):
    seconds = []
    for _ in range(ROUNDS):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        what()
        torch.cuda.synchronize()
        seconds.append(time.perf_counter() - begin)
    return count / statistics.median(seconds)


@torch.inference_mode()
def main():
    numbers = [int(word) for word in sys.argv[1:]]
    prompt, tokens = numbers[6:]
    longest = prompt + tokens
    decoder = Decoder(*numbers[:6], longest)
    every = torch.arange(longest, device="cuda")
    ids = torch.randint(0, numbers[5], (prompt,), device="cuda")

    def read():
        places = every[:prompt]
        return decoder.call(ids, places, every[None] <= places[:, None])

    def one_by_one(step):
        token, place = read(), prompt
        for _ in range(tokens):
            token = step(token, place)
            token.item()  # what is chosen is known on the host
            place += 1

    def eager(token, place):
        places = every[place : place + 1]
        return decoder.call(token, places, every[None] <= places[:, None])

    read()
    prefill = rate(prompt, read)

    def decoded(step):
        one_by_one(step)
        return tokens / (1 / rate(1, lambda: one_by_one(step)) - prompt / prefill)

    plain = decoded(eager)
    token, place = torch.zeros(1, device="cuda", dtype=torch.long), torch.zeros(1, device="cuda", dtype=torch.long)
    decoder.call(token, place, every[None] <= place[:, None])
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        chosen = decoder.call(token, place, every[None] <= place[:, None])

    def replayed(last, at):
        token.copy_(last)
        place.fill_(at)
        graph.replay()
        return chosen

    print(f"{prefill:.0f} {plain:.0f} {decoded(replayed):.0f} {torch.__version__}")


if __name__ == "__main__":
    main()
