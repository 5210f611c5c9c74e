package hf

import (
	"fmt"
	"strconv"
	"strings"

	"triax/nn"
)

// place says where a parameter lies in a folder: element (r, c) of its logical [R C], or (0, c) of [C], is element base + r row + c col of a
// tensor.
type place struct {
	tensor         string
	shape          []int // of the tensor
	base, row, col int
}

// layout is the naming of one kind of folder.
type layout interface {
	// place of a parameter of a model; ok is false for one that the layout has no tensor for.
	place(m nn.Config, p *nn.Param) (at place, ok bool)
	// ignored tensors hold no parameter: masks and tables that older versions saved.
	ignored(name string) bool
}

// layoutOf chooses by model_type.
func layoutOf(modelType string) layout {
	if modelType == "gpt2" {
		return gpt2{}
	}
	return llama{}
}

// split parts "blocks.3.attn.q.weight" into 3 and "attn.q.weight".
func split(name string) (block int, rest string, ok bool) {
	after, ok := strings.CutPrefix(name, "blocks.")
	if !ok {
		return 0, "", false
	}
	number, rest, ok := strings.Cut(after, ".")
	if !ok {
		return 0, "", false
	}
	block, err := strconv.Atoi(number)
	return block, rest, err == nil
}

// same is a tensor in the parameter's own order.
func same(name string, p *nn.Param) place {
	at := place{tensor: name, shape: p.Shape, col: 1}
	if len(p.Shape) == 2 {
		at.row = p.Shape[1]
	}
	return at
}

// llama is the layout of llama, mistral, qwen2 and qwen3.
type llama struct{}

var llamaNames = map[string]string{
	"norm1.weight": "input_layernorm.weight", "norm2.weight": "post_attention_layernorm.weight",
	"attn.q.weight": "self_attn.q_proj.weight", "attn.k.weight": "self_attn.k_proj.weight", "attn.v.weight": "self_attn.v_proj.weight",
	"attn.q.bias": "self_attn.q_proj.bias", "attn.k.bias": "self_attn.k_proj.bias", "attn.v.bias": "self_attn.v_proj.bias",
	"attn.q_norm.weight": "self_attn.q_norm.weight", "attn.k_norm.weight": "self_attn.k_norm.weight",
	"attn.out.weight": "self_attn.o_proj.weight",
	"mlp.gate.weight": "mlp.gate_proj.weight", "mlp.up.weight": "mlp.up_proj.weight", "mlp.down.weight": "mlp.down_proj.weight",
}

func (llama) place(_ nn.Config, p *nn.Param) (place, bool) {
	switch p.Name {
	case "embedding.weight":
		return same("model.embed_tokens.weight", p), true
	case "norm.weight":
		return same("model.norm.weight", p), true
	case "head.weight":
		return same("lm_head.weight", p), true
	}
	i, rest, ok := split(p.Name)
	name, known := llamaNames[rest]
	return same(fmt.Sprintf("model.layers.%d.%s", i, name), p), ok && known
}

func (llama) ignored(name string) bool { return strings.HasSuffix(name, "rotary_emb.inv_freq") }

// gpt2 is the layout of GPT-2: matrices are transposed, and queries, keys and values stand side by side in one.
type gpt2 struct{}

var gpt2Names = map[string]string{
	"norm1.weight": "ln_1.weight", "norm1.bias": "ln_1.bias", "norm2.weight": "ln_2.weight", "norm2.bias": "ln_2.bias",
	"attn.out.weight": "attn.c_proj.weight", "attn.out.bias": "attn.c_proj.bias",
	"mlp.up.weight": "mlp.c_fc.weight", "mlp.up.bias": "mlp.c_fc.bias",
	"mlp.down.weight": "mlp.c_proj.weight", "mlp.down.bias": "mlp.c_proj.bias",
}

func (gpt2) place(m nn.Config, p *nn.Param) (place, bool) {
	switch p.Name {
	case "embedding.weight":
		return same("transformer.wte.weight", p), true
	case "positions.weight":
		return same("transformer.wpe.weight", p), true
	case "norm.weight", "norm.bias":
		return same("transformer.ln_f."+strings.TrimPrefix(p.Name, "norm."), p), true
	case "head.weight":
		return same("lm_head.weight", p), true
	}
	i, rest, ok := split(p.Name)
	if !ok {
		return place{}, false
	}
	prefix := fmt.Sprintf("transformer.h.%d.", i)
	if part := strings.Index("qkv", strings.TrimSuffix(strings.TrimSuffix(strings.TrimPrefix(rest, "attn."), ".weight"), ".bias")); part >= 0 {
		return fused(prefix, part, m, p), true
	}
	name, known := gpt2Names[rest]
	at := same(prefix+name, p)
	if known && len(p.Shape) == 2 { // Conv1D keeps [in out]
		at.shape = []int{p.Shape[1], p.Shape[0]}
		at.row, at.col = 1, p.Shape[0]
	}
	return at, known
}

// fused is part 0, 1 or 2 of c_attn, which is [D 3D], its bias [3D].
func fused(prefix string, part int, m nn.Config, p *nn.Param) place {
	n := m.Heads * m.HeadDim
	if len(p.Shape) == 1 {
		return place{tensor: prefix + "attn.c_attn.bias", shape: []int{3 * n}, base: part * n, col: 1}
	}
	return place{tensor: prefix + "attn.c_attn.weight", shape: []int{m.Width, 3 * n}, base: part * n, row: 1, col: 3 * n}
}

func (gpt2) ignored(name string) bool {
	return strings.HasSuffix(name, ".attn.bias") || strings.HasSuffix(name, ".attn.masked_bias")
}
