"""Loads folders that `triax export` wrote, in transformers, and compares them with what the models they came from compute.

    triax export hf/testdata/llama --dtype fp32 -o /tmp/out/llama   # and the others
    /tmp/golden/bin/python tools/golden/check.py hf/testdata /tmp/out

For every folder: the type that transformers finds, tensors missing or unexpected, whether head and embedding are one, and the largest
difference of logits from the golden ones over the largest logit.
"""
import sys
from pathlib import Path

import torch
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM

golden, out = map(Path, sys.argv[1:3])
for folder in sorted(out.iterdir()):
    ref = load_file(golden / folder.name.split("-")[0] / "golden.safetensors")
    model, info = AutoModelForCausalLM.from_pretrained(folder, dtype="auto", output_loading_info=True, attn_implementation="eager")
    found = model.dtype
    tied = model.get_input_embeddings().weight is model.get_output_embeddings().weight
    with torch.no_grad():
        logits = model.float().eval()(input_ids=ref["input_ids"].long()).logits
    diff = ((logits - ref["logits"]).abs().max() / ref["logits"].abs().max()).item()
    wrong = {k: v for k, v in info.items() if v}
    print(f"{folder.name:16} {type(model).__name__:20} {str(found):15} tied {tied!s:5} logits differ by {diff:.1e} {wrong or ''}")
