"""Asks Hugging Face's tokenizers for the ids of this module's files and of 20,000 random texts of hard characters, for a test to compare.

    /tmp/golden/bin/python tools/golden/compare_tokens.py /tmp/tokens && TRIAX_TOKENS=/tmp/tokens go test ./tokenizer -run TestMany -v
"""
import json
import random
import sys
from pathlib import Path

from tokenizers import Tokenizer

ROOT = Path(__file__).parents[2]
POOLS = [
    [chr(c) for c in range(32, 127)], list(" \t\n\r  \u00a0\u2003\u3000\u200b\u2028\x85"), [chr(c) for c in range(0xA1, 0x250)],
    [chr(c) for c in range(0x400, 0x460)], [chr(c) for c in range(0x4E00, 0x4E80)], [chr(c) for c in range(0x300, 0x330)],
    [chr(c) for c in range(0x1F600, 0x1F640)], list("0123456789½①Ⅷ٣"), list("'sStTreEvVmMlLdD'’ſ"), [chr(c) for c in range(0xAC00, 0xAC40)],
    [chr(c) for c in (0x1100, 0x1161, 0x11A8, 0xFB01, 0x1E9E, 0x2160, 0xFFFF, 0x10FFFF, 0xE000, 0x0, 0x1F)],
    ["<tool>", "</tool>", "<|endoftext|>", "</s>", "▁"],
]

out = Path(sys.argv[1])
out.mkdir(parents=True, exist_ok=True)
random.seed(7)
texts = [p.read_text(encoding="utf-8") for p in sorted(ROOT.glob("**/*.go"))[:150] + sorted(ROOT.glob("docs/*.md"))]
texts += ["".join(random.choice(random.choice(POOLS)) for _ in range(random.randint(1, 30))) for _ in range(20000)]
(out / "texts.json").write_text(json.dumps(texts))
for folder in sorted((ROOT / "tokenizer" / "testdata").iterdir()):
    if not (folder / "tokenizer.json").exists():
        continue
    t = Tokenizer.from_file(str(folder / "tokenizer.json"))
    t.encode_special_tokens = True
    lists = [t.encode(x, add_special_tokens=False).ids for x in texts]
    (out / f"{folder.name}.json").write_text(json.dumps(lists))
    print(folder.name, len(texts), "texts,", sum(map(len, lists)), "tokens")
