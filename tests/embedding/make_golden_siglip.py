"""Makes what the picture embedder is tested against: ids, pixels and vectors by Hugging Face's own SigLIP code.

The weights are as large as those of SigLIP 2 base patch16-224 and come from a counter and a hash, so the tests make
the same ones again, to the bit, and nothing of them is kept. The model runs in 64-bit floats.

    python make_golden_siglip.py            # siglip/*, by torch on the CPU; takes about a minute and 4 GB

Needs torch, transformers 4.57, pillow and numpy. The tokenizer is a small one of the same kind as Gemma's; its ids are
spread over the whole table.
"""

import json
import math
import pathlib

import numpy as np
import torch
from PIL import Image
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
from transformers import GemmaTokenizerFast, SiglipConfig, SiglipImageProcessor, SiglipModel

FOLDER = pathlib.Path(__file__).parent / "siglip"
STEP = np.uint64(0x9E3779B97F4A7C15)
VOCABULARY = 256_000
POSITIONS = 64
# Width, height, seed, side of a block.
PICTURES = [(1280, 720, 1, 40), (640, 480, 2, 150), (100, 60, 3, 7)]
TEXTS = [
    "A Red Cup on the Kitchen Table",
    "cup",
    "Who was at the door?  Ein Café in ZÜRICH, naïve",
    "the robot looked left and looked right and ahead and saw a table with a cup, a bottle and a book, " * 4,
]
CORPUS = TEXTS + ["What did you see this morning?", "a photo of a cat", "a motorcycle in front of the house"]


def mixed(numbers):
    """SplitMix64's finaliser."""
    numbers = (numbers ^ (numbers >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    numbers = (numbers ^ (numbers >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return numbers ^ (numbers >> np.uint64(31))


def seed_of(name):
    """FNV-1a, 64 bits."""
    value = 0xCBF29CE484222325
    for byte in name.encode():
        value = ((value ^ byte) * 0x100000001B3) % 2**64
    return np.uint64(value)


def around_and_spread(name):
    """Middle and half width of a tensor's numbers; matrices keep the size of what goes through them."""
    if "norm" in name and name.endswith("weight"):
        return 1.0, 0.25
    if name.endswith("bias"):
        return 0.0, 0.125
    if name.endswith("patch_embedding.weight"):
        return 0.0, 0.125
    if name.endswith("position_embedding.weight"):
        return 0.0, 0.5
    if name.endswith("token_embedding.weight") or name.endswith("probe"):
        return 0.0, 1.0
    if name.endswith("fc2.weight"):
        return 0.0, 1 / 32
    # Sharp attention: with a flat one every text is mostly its padding.
    if name.endswith("q_proj.weight") or name.endswith("k_proj.weight"):
        return 0.0, 1 / 8
    return 0.0, 1 / 16


def numbers(name, first, count):
    """The numbers of a tensor from the one at `first` on, as 32-bit floats."""
    counter = np.arange(first + 1, first + count + 1, dtype=np.uint64)
    unit = (mixed(seed_of(name) + counter * STEP) >> np.uint64(40)).astype(np.float32) * np.float32(2**-23) - 1
    around, spread = around_and_spread(name)
    return unit * np.float32(spread) + np.float32(around)


def picture(width, height, seed, block):
    """Coloured blocks under a gradient and a little noise."""
    y, x, channel = np.meshgrid(
        np.arange(height, dtype=np.uint64),
        np.arange(width, dtype=np.uint64),
        np.arange(3, dtype=np.uint64),
        indexing="ij",
    )

    def dice(x, y):
        start = np.uint64(seed * int(STEP) % 2**64)
        return mixed(start + (y << np.uint64(24)) + (x << np.uint64(4)) + channel) >> np.uint64(56)

    blocks = dice(x // np.uint64(block), y // np.uint64(block))
    gradient = np.where(channel == 0, x * 255 // (width - 1), y * 255 // (height - 1))
    noise = dice(x, y) >> np.uint64(3)
    return ((4 * blocks + 3 * gradient + noise) // 8).astype(np.uint8)


def make_tokenizer():
    special = ["<pad>", "<eos>", "<bos>", "<unk>"]
    raw = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    raw.normalizer = normalizers.Replace(" ", "▁")
    raw.pre_tokenizer = pre_tokenizers.Split("▁", "merged_with_next")
    raw.train_from_iterator(
        [text.lower() for text in CORPUS],
        trainers.BpeTrainer(
            vocab_size=700, special_tokens=special + [f"<0x{byte:02X}>" for byte in range(256)], show_progress=False
        ),
    )
    # Capital letters are in the vocabulary too: who forgets to make words small gets other ids.
    made = json.loads(raw.to_str())
    vocabulary = made["model"]["vocab"]
    for letter in "ABCDEFGHIJKLMNOPQRSTUVWXYZ":
        vocabulary[letter] = len(vocabulary)
    pieces = sorted(vocabulary, key=vocabulary.get)
    fixed = len(special) + 256
    spacing = (VOCABULARY - 1 - fixed) / (len(pieces) - 1 - fixed)
    made["model"]["vocab"] = {
        piece: place if place < fixed else fixed + math.floor((place - fixed) * spacing)
        for place, piece in enumerate(pieces)
    }
    assert max(made["model"]["vocab"].values()) == VOCABULARY - 1
    made["added_tokens"] = [entry for entry in made["added_tokens"] if entry["content"] in special]
    made["pre_tokenizer"] = {
        "type": "Split",
        "pattern": {"String": " "},
        "behavior": "MergedWithPrevious",
        "invert": False,
    }
    (FOLDER / "tokenizer.json").write_text(json.dumps(made, ensure_ascii=False) + "\n")
    settings = {
        "add_bos_token": False,
        "add_eos_token": True,
        "bos_token": "<bos>",
        "eos_token": "<eos>",
        "pad_token": "<pad>",
        "padding_side": "right",
        "tokenizer_class": "GemmaTokenizer",
        "unk_token": "<unk>",
    }
    (FOLDER / "tokenizer_config.json").write_text(json.dumps(settings, indent=1) + "\n")
    settings.pop("tokenizer_class")
    return GemmaTokenizerFast(tokenizer_file=str(FOLDER / "tokenizer.json"), **settings)


def make_model(ids):
    text = {"vocab_size": VOCABULARY, "max_position_embeddings": POSITIONS, "projection_size": 768}
    with torch.device("meta"):
        model = SiglipModel(SiglipConfig(text_config=text, vision_config={}))
    model = model.to_empty(device="cpu").double().eval()
    table = "text_model.embeddings.token_embedding.weight"
    state = model.state_dict()
    for name, tensor in state.items():
        if name == table:
            tensor.zero_()
            for id in sorted(set(np.ravel(ids).tolist())):
                tensor[id] = torch.from_numpy(numbers(name, id * 768, 768))
        elif name.endswith("position_ids"):
            tensor.copy_(torch.arange(tensor.numel()).reshape(tensor.shape))
        else:
            tensor.copy_(torch.from_numpy(numbers(name, 0, tensor.numel())).reshape(tensor.shape))
    # Position numbers are no part of the state and were left empty.
    for embeddings in (model.text_model.embeddings, model.vision_model.embeddings):
        count = embeddings.position_ids.numel()
        embeddings.position_ids = torch.arange(count).reshape(1, count)
    shapes = {name: list(tensor.shape) for name, tensor in state.items()}
    return model, shapes


def unit(vectors):
    return torch.nn.functional.normalize(vectors, dim=-1)


def rounded(vectors):
    return [[round(number, 7) for number in vector] for vector in vectors.tolist()]


@torch.inference_mode()
def main():
    FOLDER.mkdir(exist_ok=True)
    tokenizer = make_tokenizer()
    small = [text.lower() for text in TEXTS]
    ids = tokenizer(small, padding="max_length", max_length=POSITIONS, truncation=True)["input_ids"]
    processor = SiglipImageProcessor(
        size={"height": 224, "width": 224},
        resample=Image.Resampling.BILINEAR,
        image_mean=[0.5] * 3,
        image_std=[0.5] * 3,
    )
    settings = {
        "do_normalize": True,
        "do_rescale": True,
        "do_resize": True,
        "image_mean": [0.5] * 3,
        "image_processor_type": "SiglipImageProcessor",
        "image_std": [0.5] * 3,
        "resample": 2,
        "rescale_factor": 1 / 255,
        "size": {"height": 224, "width": 224},
    }
    (FOLDER / "preprocessor_config.json").write_text(json.dumps(settings, indent=1) + "\n")
    images = [Image.fromarray(picture(*facts)) for facts in PICTURES]
    pixels = processor(images, return_tensors="pt")["pixel_values"]
    for number in range(len(images)):
        levels = ((pixels[number] * 0.5 + 0.5) * 255).round().byte().permute(1, 2, 0).numpy()
        Image.fromarray(levels).save(FOLDER / f"pixels_{number}.png", optimize=True)
    model, shapes = make_model(ids)
    seen = unit(model.get_image_features(pixels.double()))
    said = unit(model.get_text_features(torch.tensor(ids)))
    # Vectors that are alike anyway would agree with anything.
    for vectors in (seen, said):
        alike = vectors @ vectors.T - torch.eye(len(vectors))
        print("most alike", alike.max().item())
        assert alike.max() < 0.98
    golden = {
        "pictures": PICTURES,
        "texts": TEXTS,
        "ids": ids,
        "picture_vectors": rounded(seen),
        "text_vectors": rounded(said),
        "shapes": {name: shape for name, shape in shapes.items() if not name.startswith("logit_")},
        # The first numbers of two tensors and of a picture: shows a fault of the generator as what it is.
        "first": {
            name: numbers(name, 0, 4).tolist()
            for name in ("vision_model.embeddings.patch_embedding.weight", "text_model.final_layer_norm.weight")
        },
        "first_pixels": picture(*PICTURES[0])[0, :4].ravel().tolist(),
    }
    (FOLDER / "golden.json").write_text(json.dumps(golden, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
