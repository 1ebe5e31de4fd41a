"""Writes the right values for the image tests: make_image_reference.py PHOTOS DEST

PHOTOS is the folder with the fixture pictures. DEST gets `decode.json` (size, mean
and some pixels of every picture), `resize.json` (the cases) and `resize/*.raw` (the
whole result of each, interleaved bytes). Needs Pillow and numpy.
"""
import json
import random
import sys
import warnings
from pathlib import Path

import numpy as np
import PIL
from PIL import Image, ImageOps

PHOTOS, DEST = Path(sys.argv[1]), Path(sys.argv[2])
TOOL = f"Pillow {PIL.__version__}"
PROBES = 40
FILTERS = {"nearest": 0, "bilinear": 2, "bicubic": 3, "lanczos": 1}
warnings.simplefilter("ignore", UserWarning)  # palettes with transparency lose it on purpose


def decode(path):
    """Upright RGB; 16 bits give their high byte, alpha is dropped."""
    picture = ImageOps.exif_transpose(Image.open(path))
    if picture.mode.startswith("I"):
        grey = (np.asarray(picture).astype(np.uint32) >> 8).astype(np.uint8)
        return np.repeat(grey[..., None], 3, axis=2)
    return np.asarray(picture.convert("RGB"))


def decode_reference():
    files = {}
    for path in sorted(PHOTOS.glob("*/*.*")):
        pixels = decode(path)
        height, width, _ = pixels.shape
        name = path.relative_to(PHOTOS).as_posix()
        choose = random.Random(name)
        places = [(choose.randrange(height), choose.randrange(width)) for _ in range(PROBES)]
        places += [(0, 0), (height - 1, width - 1)]
        files[name] = {
            "height": height,
            "width": width,
            "mean": [round(float(v), 4) for v in pixels.mean((0, 1))],
            "probes": [[y, x, *map(int, pixels[y, x])] for y, x in places],
        }
    write_json(DEST / "decode.json", {
        "tool": TOOL,
        "probes": "[y, x, r, g, b] after turning upright",
        "files": files,
    })


def crop(name, channels, top, left, height, width):
    """The part of a picture that a case starts from.

    One channel is R. Two are R and a made-up one, four RGB and the same: channel
    value (7 * x + 13 * y) mod 256 at the crop's pixel (y, x).
    """
    part = decode(PHOTOS / name)[top:top + height, left:left + width]
    assert part.shape[:2] == (height, width), name
    y, x = np.mgrid[0:height, 0:width]
    made_up = ((7 * x + 13 * y) % 256).astype(np.uint8)[..., None]
    return {
        1: part[..., :1],
        2: np.concatenate([part[..., :1], made_up], -1),
        3: part,
        4: np.concatenate([part, made_up], -1),
    }[channels]


def resize(pixels, height, width, how):
    """Each channel by itself, so that alpha isn't multiplied in."""
    channels = [
        np.asarray(Image.fromarray(np.ascontiguousarray(pixels[..., c])).resize((width, height), how))
        for c in range(pixels.shape[2])
    ]
    return np.stack(channels, -1)


# (picture, channels, crop as top, left, height, width; result's height, width).
# Lossless pictures only, so that both sides start from the same bytes.
RESIZES = [
    ("thing/t06.png", 3, (0, 0, 160, 240), (48, 64)),
    ("thing/t06.png", 3, (0, 0, 160, 240), (48, 72)),
    ("thing/t06.png", 3, (61, 90, 20, 28), (45, 61)),
    ("thing/t06.png", 3, (30, 100, 60, 20), (15, 53)),
    ("thing/t07_gray.png", 1, (0, 0, 192, 256), (48, 64)),
    ("thing/t07_gray.png", 1, (0, 0, 192, 256), (100, 133)),
    ("thing/t07_gray.png", 1, (50, 50, 31, 40), (45, 60)),
    ("thing/t07_gray.png", 1, (50, 50, 90, 40), (20, 30)),
    ("plant/p07_alpha.png", 4, (0, 0, 200, 200), (48, 64)),
    ("plant/p07_alpha.png", 4, (10, 20, 101, 130), (101, 22)),
    ("plant/p07_alpha.png", 2, (80, 80, 20, 28), (45, 61)),
    ("plant/p07_alpha.png", 4, (80, 80, 60, 28), (29, 28)),
    ("plant/p06_palette.png", 3, (0, 0, 256, 256), (48, 64)),
    ("plant/p06_palette.png", 3, (0, 0, 256, 256), (40, 40)),
    ("plant/p06_palette.png", 3, (128, 100, 20, 28), (45, 61)),
    ("plant/p06_palette.png", 3, (128, 100, 3, 5), (1, 1)),
]


def resize_reference():
    (DEST / "resize").mkdir(parents=True, exist_ok=True)
    for old in (DEST / "resize").glob("*.raw"):
        old.unlink()
    cases = []
    for name, channels, (top, left, height, width), (to_height, to_width) in RESIZES:
        pixels = crop(name, channels, top, left, height, width)
        for filter_name, how in FILTERS.items():
            result = resize(pixels, to_height, to_width, how)
            stem = Path(name).stem.split("_")[0]
            data = f"{stem}_{height}x{width}x{channels}_to_{to_height}x{to_width}_{filter_name}.raw"
            (DEST / "resize" / data).write_bytes(result.tobytes())
            cases.append({
                "picture": name,
                "channels": channels,
                "crop": [top, left, height, width],
                "to": [to_height, to_width],
                "filter": filter_name,
                "data": data,
            })
    write_json(DEST / "resize.json", {
        "tool": TOOL,
        "crop": "[top, left, height, width]",
        "to": "[height, width]",
        "channels": "1: R; 2: R and made up; 3: RGB; 4: RGB and made up, (7 x + 13 y) mod 256",
        "cases": cases,
    })


def write_json(path, value):
    """One line for each picture or case, so that changes are readable."""
    key = "files" if "files" in value else "cases"
    many = value.pop(key)
    lines = [json.dumps(v, separators=(",", ":")) for v in (many.values() if key == "files" else many)]
    if key == "files":
        lines = [f"{json.dumps(k)}: {line}" for k, line in zip(many, lines)]
    head = json.dumps(value, indent=1)[1:-2]
    begin, end = ("{", "}") if key == "files" else ("[", "]")
    path.write_text("{" + head + f',\n "{key}": {begin}\n  ' + ",\n  ".join(lines) + f"\n {end}\n}}\n")


DEST.mkdir(parents=True, exist_ok=True)
decode_reference()
resize_reference()
