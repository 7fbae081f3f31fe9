"""Makes the reference vectors that the text embedder is tested against.

An independent BERT in plain numpy, in 64-bit floats, from the formulas of the BERT paper (post-layer-norm encoder,
GELU by the error function). It shares no code with the embedder under test except the tokenizer library, which is
run one text at a time, without padding, so that padding and masks in batches are tested too.

    python make_golden.py tiny                     # tiny/* and golden_tiny.json: a seeded random model
    python make_golden.py minilm FOLDER            # golden_minilm.json from all-MiniLM-L6-v2 in FOLDER

Needs numpy and tokenizers.
"""

import json
import math
import pathlib
import struct
import sys

import numpy as np
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

HERE = pathlib.Path(__file__).parent
TEXTS = [
    "What did we talk about this morning?",
    "The key of the bicycle is in the blue box.",
    "cup",
    "My sister Anna arrives on Sunday at half past nine, and she wants to see the old harbour, the market hall "
    "and the little church on the hill before she takes the night train home again.",
]
erf = np.vectorize(math.erf)


def read_safetensors(path):
    raw = path.read_bytes()
    (length,) = struct.unpack("<Q", raw[:8])
    header = json.loads(raw[8 : 8 + length])
    tensors = {}
    for name, entry in header.items():
        if name != "__metadata__" and entry["dtype"] == "F32":
            start, end = entry["data_offsets"]
            data = np.frombuffer(raw[8 + length + start : 8 + length + end], dtype="<f4")
            tensors[name] = data.reshape(entry["shape"]).astype(np.float64)
    return tensors


def write_safetensors(path, tensors):
    header, body = {}, b""
    for name, tensor in tensors.items():
        data = tensor.astype("<f4").tobytes()
        header[name] = {
            "dtype": "F32",
            "shape": list(tensor.shape),
            "data_offsets": [len(body), len(body) + len(data)],
        }
        body += data
    encoded = json.dumps(header).encode()
    encoded += b" " * (-len(encoded) % 8)
    path.write_bytes(struct.pack("<Q", len(encoded)) + encoded + body)


def layer_norm(x, weights, name, epsilon):
    mean = x.mean(-1, keepdims=True)
    variance = ((x - mean) ** 2).mean(-1, keepdims=True)
    return (x - mean) / np.sqrt(variance + epsilon) * weights[name + ".weight"] + weights[name + ".bias"]


def linear(x, weights, name):
    return x @ weights[name + ".weight"].T + weights[name + ".bias"]


def bert(ids, weights, config):
    """Hidden states of one text, (tokens, hidden size)."""
    epsilon, heads = config["layer_norm_eps"], config["num_attention_heads"]
    x = (
        weights["embeddings.word_embeddings.weight"][ids]
        + weights["embeddings.position_embeddings.weight"][: len(ids)]
        + weights["embeddings.token_type_embeddings.weight"][0]
    )
    x = layer_norm(x, weights, "embeddings.LayerNorm", epsilon)
    for number in range(config["num_hidden_layers"]):
        layer = f"encoder.layer.{number}"
        query, key, value = (
            linear(x, weights, f"{layer}.attention.self.{part}").reshape(len(ids), heads, -1).transpose(1, 0, 2)
            for part in ("query", "key", "value")
        )
        scores = query @ key.transpose(0, 2, 1) / math.sqrt(query.shape[-1])
        scores = np.exp(scores - scores.max(-1, keepdims=True))
        mixed = (scores / scores.sum(-1, keepdims=True)) @ value
        mixed = mixed.transpose(1, 0, 2).reshape(len(ids), -1)
        attended = layer_norm(
            x + linear(mixed, weights, f"{layer}.attention.output.dense"),
            weights,
            f"{layer}.attention.output.LayerNorm",
            epsilon,
        )
        inner = linear(attended, weights, f"{layer}.intermediate.dense")
        inner = 0.5 * inner * (1.0 + erf(inner / math.sqrt(2.0)))
        x = layer_norm(
            attended + linear(inner, weights, f"{layer}.output.dense"), weights, f"{layer}.output.LayerNorm", epsilon
        )
    return x


def unit(vector):
    return vector / np.linalg.norm(vector)


def vectors(folder, pooling, max_tokens):
    config = json.loads((folder / "config.json").read_text())
    weights = read_safetensors(folder / "model.safetensors")
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(max_tokens)
    result = []
    for text in TEXTS:
        states = bert(tokenizer.encode(text).ids, weights, config)
        pooled = states[0] if pooling == "cls" else states.mean(0)
        result.append([round(float(number), 7) for number in unit(pooled)])
    return result


def make_tiny(folder):
    folder.mkdir(exist_ok=True)
    random = np.random.default_rng(7)
    words = "what did we talk about this morning the key of is in blue box my on at and she to see old before".split()
    letters = "abcdefghijklmnopqrstuvwxyz?.,"
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *letters, *("##" + letter for letter in letters[:26])]
    vocabulary += [word for word in words if word not in vocabulary]
    tokenizer = Tokenizer(models.WordPiece({word: id for id, word in enumerate(vocabulary)}, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    tokenizer.save(str(folder / "tokenizer.json"), pretty=False)
    hidden, inner, layers = 32, 64, 2
    config = {
        "vocab_size": len(vocabulary),
        "hidden_size": hidden,
        "num_hidden_layers": layers,
        "num_attention_heads": 4,
        "intermediate_size": inner,
        "hidden_act": "gelu",
        "hidden_dropout_prob": 0.1,
        "max_position_embeddings": 64,
        "type_vocab_size": 2,
        "initializer_range": 0.02,
        "layer_norm_eps": 1e-12,
        "pad_token_id": 0,
        "model_type": "bert",
    }
    (folder / "config.json").write_text(json.dumps(config, indent=1) + "\n")
    tensors = {}

    def add(name, *shape, spread=0.3, around=0.0):
        tensors[name] = around + spread * random.standard_normal(shape)

    def add_norm(name):
        add(name + ".weight", hidden, spread=0.1, around=1.0)
        add(name + ".bias", hidden, spread=0.1)

    def add_linear(name, out, into):
        add(name + ".weight", out, into)
        add(name + ".bias", out, spread=0.1)

    add("embeddings.word_embeddings.weight", len(vocabulary), hidden)
    add("embeddings.position_embeddings.weight", 64, hidden)
    add("embeddings.token_type_embeddings.weight", 2, hidden)
    add_norm("embeddings.LayerNorm")
    for number in range(layers):
        layer = f"encoder.layer.{number}"
        for part in ("query", "key", "value"):
            add_linear(f"{layer}.attention.self.{part}", hidden, hidden)
        add_linear(f"{layer}.attention.output.dense", hidden, hidden)
        add_norm(f"{layer}.attention.output.LayerNorm")
        add_linear(f"{layer}.intermediate.dense", inner, hidden)
        add_linear(f"{layer}.output.dense", hidden, inner)
        add_norm(f"{layer}.output.LayerNorm")
    write_safetensors(folder / "model.safetensors", tensors)


def save(name, golden):
    (HERE / name).write_text(json.dumps(golden) + "\n")


if __name__ == "__main__":
    if sys.argv[1:] == ["tiny"]:
        make_tiny(HERE / "tiny")
        save(
            "golden_tiny.json",
            {
                "texts": TEXTS,
                "max_tokens": 48,
                "cls": vectors(HERE / "tiny", "cls", 48),
                "mean": vectors(HERE / "tiny", "mean", 48),
            },
        )
    elif len(sys.argv) == 3 and sys.argv[1] == "minilm":
        save(
            "golden_minilm.json",
            {"texts": TEXTS, "max_tokens": 256, "mean": vectors(pathlib.Path(sys.argv[2]), "mean", 256)},
        )
    else:
        sys.exit(__doc__)
