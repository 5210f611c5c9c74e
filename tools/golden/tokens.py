"""Small tokenizers of the kinds that published models have, and the ids that Hugging Face's tokenizers makes with them.

    /tmp/golden/bin/python tools/golden/tokens.py tokenizer/testdata

Each folder has tokenizer.json and golden.json: a list of {"text", "ids", "back"}; special tokens in a text are encoded as text.
"""
import json
import sys
from pathlib import Path

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

HERE = Path(__file__).parent
CORPUS = [Path(p).read_text(encoding="utf-8") for p in (HERE / "tokens.py", HERE / "models.py")] * 2 + [
    "The quick brown fox jumps over the lazy dog. It's what we'll do, isn't it? They've said I'd be there.",
    "Zwölf Boxkämpfer jagen Viktor quer über den großen Sylter Deich. Ça va très bien, merci à l'été.",
    "Съешь же ещё этих мягких французских булок, да выпей чаю. 我能吞下玻璃而不伤身体。 私はガラスを食べられます。",
    "func main() {\n\tfmt.Println(\"hello, world\")\n\treturn\n}\n\n\n    if x == 12345 { y++ }\r\n",
]

TEXTS = [
    "", " ", "  ", "\n", "a", "Hello", " Hello", "Hello world", "hello  world", "  two  spaces ", "tab\there", "line\nline\r\n\r\n  x", "\n\n\n\nfour",
    "It's we'll I'd they've I'M SHE'S don't", "1234567890 12 3.14159", "x=1;y=22;z=333;w=4444", "naïve café Ça", "e\u0301a\u0308 combining",
    "日本語のテキスト", "русский текст", "🙂👍🏽👨‍👩‍👧 emoji", "mixed 日本 and русский🙂", "\u00a0nbsp\u2003em\u3000ideographic", "\x00\x01\x7f control",
    "<|endoftext|>", "a<|endoftext|>b", "</s> <s> <unk>", "<tool>call</tool>", "x<tool><tool>y", "▁mark ▁▁", "<0x41> <0xE2>", "ſ'ſ I'ſ", "   ", "trailing   ",
    "    indented\n        more\n\n    less", "func main() {\n\tfmt.Println(\"hello\")\n}", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    "https://example.org/a_b-c?d=e&f=%20g", "ﬁ ligature ① Ⅷ ½", "\ufeffbom", "zero\u200bwidth\u200djoiner", "ÀÉÎÕÜ ß ẞ", "שלום עולם", "नमस्ते दुनिया", "ไทย",
]

LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
QWEN = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")


def gpt2():
    t = Tokenizer(models.BPE())
    t.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    t.decoder = decoders.ByteLevel()
    return t, trainers.BpeTrainer(vocab_size=700, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), special_tokens=["<|endoftext|>"])


def split(pattern, normalizer=None, ignore=False):
    t = Tokenizer(models.BPE(ignore_merges=ignore))
    t.normalizer = normalizer
    t.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(pattern), "isolated"), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    t.decoder = decoders.ByteLevel()
    return t, trainers.BpeTrainer(vocab_size=700, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), special_tokens=["<|end_of_text|>"])


def sentencepiece(metaspace):
    t = Tokenizer(models.BPE(unk_token="<unk>", byte_fallback=True, fuse_unk=True))
    if metaspace:
        t.pre_tokenizer = pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="first", split=False)
        t.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    else:
        t.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
        t.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    return t, trainers.BpeTrainer(vocab_size=900, special_tokens=["<unk>", "<s>", "</s>"] + [f"<0x{b:02X}>" for b in range(256)], limit_alphabet=120,
                                  max_token_length=12)


KINDS = {
    "gpt2": gpt2, "llama3": lambda: split(LLAMA3, ignore=True), "qwen2": lambda: split(QWEN, normalizers.NFC()),
    "llama2": lambda: sentencepiece(False), "mistral": lambda: sentencepiece(True),
}


def trained(make):
    """Merges across words need pieces: SentencePiece's kind is trained on words with their mark, as its own trainer does."""
    t, trainer = make()
    keep = t.pre_tokenizer
    if keep is None or isinstance(keep, pre_tokenizers.Metaspace):
        t.pre_tokenizer = pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="first", split=True)
    t.train_from_iterator(CORPUS, trainer)
    d = json.loads(t.to_str())
    d["pre_tokenizer"] = json.loads(Tokenizer.to_str(make()[0]))["pre_tokenizer"]
    return Tokenizer.from_str(json.dumps(d))


if __name__ == "__main__":
    for name, make in KINDS.items():
        t = trained(make)
        t.add_tokens([AddedToken("<tool>", normalized=False), AddedToken("</tool>", normalized=False)])
        folder = Path(sys.argv[1]) / name
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "tokenizer.json").write_text(t.to_str(pretty=False), encoding="utf-8")
        if name == "gpt2":
            t.model.save(str(folder))
        t.encode_special_tokens = True
        golden = []
        for text in TEXTS:
            ids = t.encode(text, add_special_tokens=False).ids
            golden.append({"text": text, "ids": ids, "back": t.decode(ids, skip_special_tokens=False)})
        (folder / "golden.json").write_text(json.dumps(golden, ensure_ascii=True, indent=0), encoding="utf-8")
        print(name, t.get_vocab_size(), sum(f.stat().st_size for f in folder.iterdir()), "bytes")
