"""Values of colour changes by Pillow: brightness, contrast, saturation (ImageEnhance), hue (HSV, as torchvision does).

python make_jitter_reference.py fixtures/photos tests/reference/image/jitter.json   (Pillow 13.0.0, NumPy)
"""

import json
import sys

import numpy as np
import PIL
from PIL import Image, ImageEnhance

photos, to = sys.argv[1:]
crop = (40, 30, 56, 42)
cases = []
for name in ["thing/t06.png", "plant/p06_palette.png"]:
    picture = Image.open(f"{photos}/{name}").convert("RGB").crop(crop)
    for kind, enhance in [("brightness", ImageEnhance.Brightness), ("contrast", ImageEnhance.Contrast), ("saturation", ImageEnhance.Color)]:
        for factor in [0.0, 0.3, 0.75, 1.0, 1.5, 3.25]:
            pixels = np.asarray(enhance(picture).enhance(factor)).ravel().tolist()
            cases.append({"picture": name, "change": kind, "factor": factor, "pixels": pixels})
    for factor in [-0.5, -0.1, 0.0, 0.05, 0.4]:
        hue, saturation, value = picture.convert("HSV").split()
        hue = np.array(hue, dtype=np.uint8)
        hue += np.int32(factor * 255).astype(np.uint8)
        changed = Image.merge("HSV", (Image.fromarray(hue, "L"), saturation, value)).convert("RGB")
        cases.append({"picture": name, "change": "hue", "factor": factor, "pixels": np.asarray(changed).ravel().tolist()})
with open(to, "w") as file:
    json.dump({"pillow": PIL.__version__, "crop": crop, "cases": cases}, file, separators=(",", ":"))
