// Package hf reads models that others have trained and writes models that others can load: folders of config.json and safetensors files in
// the layout of Hugging Face's transformers. Nothing is converted on the way but the order of elements and their type: a parameter's
// logical element has one place in one tensor of the folder, and a rank asks for its own elements only, so any mesh can start from, or
// end in, the same files.
//
//	config.json ──▶ Config ──▶ nn.Config               Shape: what to build; Supported: what is refused, by name
//	*.safetensors ─ mapped ─▶ Weights (an nn.Source) ──▶ each rank's part of every parameter
//	blocks.0.attn.q.weight [Q D]  ↔  h.0.attn.c_attn.weight [D 3D], columns 0 up to Q, transposed      (gpt2)
//	blocks.0.attn.q.weight [Q D]  ↔  model.layers.0.self_attn.q_proj.weight [Q D]                      (llama, mistral, qwen2, qwen3)
//
// What it costs: an import reads each byte that a rank holds once, through the page cache; beside the rank's part it needs half a
// megabyte. An export holds one tensor at a time.
// What to read next: names.go, then weights.go and export.go; package tokenizer for the text side; tools/golden for the proof.
package hf
