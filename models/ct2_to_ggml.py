#!/usr/bin/env python3
"""Turns a Whisper model that was made for CTranslate2 into the file that whisper.cpp reads.

    ct2_to_ggml.py FOLDER OUT.bin [f16|q8_0]

FOLDER holds `model.bin` and `vocabulary.txt` or `vocabulary.json`; OUT.bin is written whole. Needs numpy and nothing
else. The same input gives the same bytes on every machine, so the result can be pinned by its hash: the logarithm
and the exponentials behind the mel filters are computed in decimal, which no machine's own mathematics can tint.

Formats: CTranslate2's is a list of named arrays (its `model_spec.py` writes it); whisper.cpp's is a header of eleven
32-bit numbers, the mel filters, the vocabulary, and a list of named tensors whose dimensions are written innermost
first (its `models/convert-pt-to-ggml.py` writes it). All numbers are little-endian.

Exit codes: 0 written, 1 the input is not what it should be, 2 wrong use.
"""

import decimal
import json
import os
import struct
import sys

import numpy as np

GGML_MAGIC = 0x67676D6C
TYPE_F32, TYPE_F16, TYPE_Q8_0 = 0, 1, 8
# In the header: the type of most tensors. A quantised file adds a thousand for each version of the block layout.
FILE_TYPES = {"f16": 1, "q8_0": 2007}

CT2_DTYPES = {0: "<f4", 1: "<i1", 2: "<i2", 3: "<i4", 4: "<f2"}
CT2_OLDEST_VERSION = 4

SAMPLE_RATE = 16_000
FFT_SIZE = 400
# Slaney's mel scale: linear up to 1 kHz (which is 15 mel), logarithmic with 27 mel to a factor of 6.4 above it.
MEL_BREAK = 15.0
HZ_BREAK = 1000.0


def logarithm(value):
    """Rounded to the nearest float, the same on every machine."""
    return float(decimal.Decimal(value).ln())


def exponential(value):
    """Rounded to the nearest float, the same on every machine."""
    return float(decimal.Decimal(value).exp())


LOG_STEP = logarithm(6.4) / 27.0

# A multilingual vocabulary has one more word than an English one before its first special token.
MULTILINGUAL_VOCABULARY = 51_865
WORDS_ENGLISH, WORDS_MULTILINGUAL = 50_256, 50_257
FIRST_SPECIAL = "<|endoftext|>"


class WrongInput(Exception):
    """The folder does not hold a Whisper model as CTranslate2 writes it."""


# --- reading CTranslate2 ---


class Reader:
    """Walks through the bytes of `model.bin`."""

    def __init__(self, data):
        self.data = data
        self.offset = 0

    def number(self, code):
        try:
            (value,) = struct.unpack_from("<" + code, self.data, self.offset)
        except struct.error as error:
            raise WrongInput(f"model.bin ends at byte {len(self.data)}, in the middle of a number") from error
        self.offset += struct.calcsize("<" + code)
        return value

    def string(self):
        length = self.number("H")
        text = self.data[self.offset : self.offset + length - 1]
        self.offset += length
        return text.decode("utf-8")

    def array(self):
        shape = [self.number("I") for _ in range(self.number("B"))]
        code = self.number("B")
        if code not in CT2_DTYPES:
            raise WrongInput(f"model.bin holds numbers of the unknown type {code}")
        dtype = np.dtype(CT2_DTYPES[code])
        size = self.number("I")
        if self.offset + size > len(self.data):
            raise WrongInput(f"model.bin is cut short at byte {len(self.data)}")
        array = np.frombuffer(self.data, dtype, size // dtype.itemsize, self.offset).reshape(shape)
        self.offset += size
        return array

    def ended(self):
        return self.offset >= len(self.data)


def read_ct2_arrays(path):
    """Every named array of a CTranslate2 model, with its aliases."""
    with open(path, "rb") as file:
        reader = Reader(file.read())
    version, spec, _revision = reader.number("I"), reader.string(), reader.number("I")
    if spec != "WhisperSpec" or version < CT2_OLDEST_VERSION:
        raise WrongInput(f"{path} is a {spec or 'nameless'} of version {version}, not a WhisperSpec")
    arrays = {}
    for _ in range(reader.number("I")):
        name = reader.string()
        arrays[name] = reader.array()
    if not reader.ended():
        for _ in range(reader.number("I")):
            alias, target = reader.string(), reader.string()
            arrays[alias] = arrays[target]
    return arrays


def read_vocabulary(folder):
    """The tokens in their order, as text."""
    plain = os.path.join(folder, "vocabulary.txt")
    if os.path.exists(plain):
        with open(plain, encoding="utf-8", newline="\n") as file:
            return file.read().split("\n")
    with open(os.path.join(folder, "vocabulary.json"), encoding="utf-8") as file:
        return json.load(file)


# --- words and filters ---


def byte_of_each_letter():
    """GPT-2's vocabulary writes each byte as a printable letter; this is the way back, letter to byte."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    unprintable = [byte for byte in range(256) if byte not in printable]
    letters = {chr(byte): byte for byte in printable}
    letters.update({chr(256 + place): byte for place, byte in enumerate(unprintable)})
    return letters


def words_as_bytes(tokens, vocabulary_size):
    """The bytes of every word before the special tokens; whisper.cpp makes the special ones itself."""
    count = WORDS_MULTILINGUAL if vocabulary_size >= MULTILINGUAL_VOCABULARY else WORDS_ENGLISH
    if len(tokens) <= count or tokens[count] != FIRST_SPECIAL:
        raise WrongInput(f"token {count} of the vocabulary is not {FIRST_SPECIAL}")
    letters = byte_of_each_letter()
    return [bytes(letters[letter] for letter in token) for token in tokens[:count]]


def hz_of_mel(mel):
    if mel < MEL_BREAK:
        return mel * 200.0 / 3
    return HZ_BREAK * exponential(LOG_STEP * (mel - MEL_BREAK))


def mel_filters(bands):
    """Triangles of equal area on Slaney's mel scale, (bands, FFT_SIZE / 2 + 1), as librosa and Whisper use them."""
    highest_hz = SAMPLE_RATE / 2
    highest_mel = MEL_BREAK + logarithm(highest_hz / HZ_BREAK) / LOG_STEP
    step = highest_mel / (bands + 1)
    corners = [hz_of_mel(step * place) for place in range(bands + 1)] + [hz_of_mel(highest_mel)]
    bins = [highest_hz / (FFT_SIZE // 2) * place for place in range(FFT_SIZE // 2 + 1)]
    filters = np.zeros((bands, len(bins)), "<f4")
    for band in range(bands):
        low, centre, high = corners[band : band + 3]
        area = 2.0 / (high - low)
        for place, hz in enumerate(bins):
            # Written so that the very first number is -0.0, as in the files that numpy's own arithmetic makes.
            height = min(-(low - hz) / (centre - low), (high - hz) / (high - centre))
            filters[band, place] = max(height, 0.0) * area
    return filters


# --- the tensors under whisper.cpp's names ---


class Model:
    """A CTranslate2 Whisper, asked for what whisper.cpp wants to know."""

    def __init__(self, arrays):
        self.arrays = arrays
        self.embedding = self["decoder/embeddings/weight"]
        self.vocabulary_size, self.width = self.embedding.shape
        self.mel_bands = self["encoder/conv1/weight"].shape[1]

    def __getitem__(self, name):
        if name not in self.arrays:
            raise WrongInput(f"model.bin has no array {name}")
        return self.arrays[name]

    def layers(self, side):
        prefix = f"{side}/layer_"
        numbers = [name[len(prefix) :].split("/")[0] for name in self.arrays if name.startswith(prefix)]
        return 1 + max(int(number) for number in numbers if number.isdigit())

    def context(self, side):
        return self[f"{side}/position_encodings/encodings"].shape[0]

    def header(self):
        return [
            self.vocabulary_size,
            self.context("encoder"),
            self.width,
            int(self["encoder/num_heads"]),
            self.layers("encoder"),
            self.context("decoder"),
            self.width,
            int(self["decoder/num_heads"]),
            self.layers("decoder"),
            self.mel_bands,
        ]

    def pair(self, source, target):
        yield f"{target}.weight", self[f"{source}/weight"]
        yield f"{target}.bias", self[f"{source}/bias"]

    def norm(self, source, target):
        yield f"{target}.weight", self[f"{source}/layer_norm/gamma"]
        yield f"{target}.bias", self[f"{source}/layer_norm/beta"]

    def self_attention(self, source, target):
        """CTranslate2 stacks query, key and value in one matrix; Whisper's key has no bias."""
        weight, bias = self[f"{source}/linear_0/weight"], self[f"{source}/linear_0/bias"]
        query, key, value = (slice(part * self.width, (part + 1) * self.width) for part in range(3))
        if np.any(bias[key]):
            raise WrongInput(f"{source} has a bias on its key, which no Whisper has")
        yield f"{target}.query.weight", weight[query]
        yield f"{target}.query.bias", bias[query]
        yield f"{target}.key.weight", weight[key]
        yield f"{target}.value.weight", weight[value]
        yield f"{target}.value.bias", bias[value]
        yield from self.pair(f"{source}/linear_1", f"{target}.out")

    def cross_attention(self, source, target):
        """Here only key and value are stacked."""
        yield from self.pair(f"{source}/linear_0", f"{target}.query")
        yield from self.pair(f"{source}/linear_2", f"{target}.out")
        weight, bias = self[f"{source}/linear_1/weight"], self[f"{source}/linear_1/bias"]
        yield f"{target}.key.weight", weight[: self.width]
        yield f"{target}.value.weight", weight[self.width :]
        yield f"{target}.value.bias", bias[self.width :]

    def layer(self, side, number):
        source, target = f"{side}/layer_{number}", f"{side}.blocks.{number}"
        yield from self.norm(f"{source}/self_attention", f"{target}.attn_ln")
        yield from self.norm(f"{source}/ffn", f"{target}.mlp_ln")
        yield from self.self_attention(f"{source}/self_attention", f"{target}.attn")
        yield from self.pair(f"{source}/ffn/linear_0", f"{target}.mlp.0")
        yield from self.pair(f"{source}/ffn/linear_1", f"{target}.mlp.2")
        if side == "decoder":
            yield from self.norm(f"{source}/attention", f"{target}.cross_attn_ln")
            yield from self.cross_attention(f"{source}/attention", f"{target}.cross_attn")

    def tensors(self):
        """Every tensor, (name, array)."""
        for side, last_norm in (("encoder", "ln_post"), ("decoder", "ln")):
            yield f"{side}.positional_embedding", self[f"{side}/position_encodings/encodings"]
            yield from self.norm(side, f"{side}.{last_norm}")
            for number in range(self.layers(side)):
                yield from self.layer(side, number)
        for convolution in ("conv1", "conv2"):
            yield f"encoder.{convolution}.weight", self[f"encoder/{convolution}/weight"]
            yield f"encoder.{convolution}.bias", self[f"encoder/{convolution}/bias"].reshape(-1, 1)
        yield "decoder.token_embedding.weight", self.embedding


# --- writing ggml ---


def quantise_q8_0(matrix):
    """Blocks of 32 numbers: a 16-bit scale, then 32 signed bytes."""
    blocks = matrix.reshape(-1, 32).astype(np.float32)
    scale = np.abs(blocks).max(1) / 127
    inverse = np.where(scale > 0, 1 / np.where(scale > 0, scale, 1), 0)
    quantised = np.rint(blocks * inverse[:, None]).astype(np.int8)
    return np.concatenate([scale.astype("<f2")[:, None].view(np.uint8), quantised.view(np.uint8)], 1).tobytes()


def encode_tensor(name, array, kind):
    """(type code, bytes). Vectors, positions and convolution biases stay at 32 bits, as whisper.cpp expects them."""
    stays_whole = name.endswith("positional_embedding") or name in ("encoder.conv1.bias", "encoder.conv2.bias")
    if array.ndim < 2 or stays_whole:
        return TYPE_F32, array.astype("<f4").tobytes()
    if kind == "q8_0" and array.ndim == 2:
        return TYPE_Q8_0, quantise_q8_0(array)
    return TYPE_F16, array.astype("<f2").tobytes()


def write_ggml(out, model, words, kind):
    def numbers(*values):
        out.write(struct.pack(f"<{len(values)}i", *values))

    numbers(GGML_MAGIC, *model.header(), FILE_TYPES[kind])
    filters = mel_filters(model.mel_bands)
    numbers(*filters.shape)
    out.write(filters.tobytes())
    numbers(len(words))
    for word in words:
        numbers(len(word))
        out.write(word)
    for name, array in model.tensors():
        code, data = encode_tensor(name, array, kind)
        label = name.encode("ascii")
        numbers(array.ndim, len(label), code)
        numbers(*reversed(array.shape))
        out.write(label)
        out.write(data)


def convert(folder, target, kind):
    model = Model(read_ct2_arrays(os.path.join(folder, "model.bin")))
    words = words_as_bytes(read_vocabulary(folder), model.vocabulary_size)
    with open(target, "wb") as out:
        write_ggml(out, model, words, kind)


def main(arguments):
    if len(arguments) not in (2, 3) or (len(arguments) == 3 and arguments[2] not in FILE_TYPES):
        print("usage: ct2_to_ggml.py FOLDER OUT.bin [f16|q8_0]", file=sys.stderr)
        return 2
    try:
        convert(arguments[0], arguments[1], arguments[2] if len(arguments) == 3 else "f16")
    except (OSError, WrongInput) as error:
        print(f"ct2_to_ggml.py: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
