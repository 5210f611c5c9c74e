package dialect

import (
	"fmt"
	"strconv"
	"strings"
)

// cut reads the mesh and the pipeline. Megatron's data ranks are world / (tp pp cp), and its expert ranks are a part of them; here the expert
// axis stands beside the data axis, so data ranks are fewer by it.
func (m *megatronArgs) cut() {
	mesh := &m.c.Mesh
	mesh.TP = m.degree("--tensor-model-parallel-size", 1, "mesh.tp")
	mesh.PP = m.degree("--pipeline-model-parallel-size", 1, "mesh.pp")
	mesh.CP = m.degree("--context-parallel-size", 1, "mesh.cp")
	mesh.EP = m.degree("--expert-model-parallel-size", 1, "mesh.ep")
	mesh.SequenceParallel = m.on("--sequence-parallel", "mesh.sequence_parallel") && mesh.TP > 1
	if etp := m.degree("--expert-tensor-parallel-size", mesh.TP, "experts whole on each tensor rank"); m.c.Model.Experts > 0 && mesh.TP > 1 && etp != 1 {
		m.refuse("--expert-tensor-parallel-size", fmt.Sprint(etp), "experts are not cut over tensor ranks here", "use 1")
	}
	if m.on("--use-tp-pp-dp-mapping", "mesh.axes") {
		mesh.Axes = []string{"dp_replicate", "dp", "ep", "cp", "pp", "tp"}
	} else {
		mesh.Axes = []string{"pp", "dp_replicate", "dp", "ep", "cp", "tp"}
	}
	if m.text("--cp-comm-type", "p2p", "ring attention") != "p2p" {
		m.differs("--cp-comm-type", m.value["--cp-comm-type"][0], "keys and values go round a ring here")
	}
	if name := "--tp-comm-overlap"; m.has(name) {
		mesh.TPOverlap = m.on(name, "mesh.tp_overlap")
	}
	data := m.divide("--world", m.World, mesh.TP*mesh.PP*mesh.CP, fmt.Sprintf("ranks over tensor %d, pipeline %d and context %d", mesh.TP, mesh.PP, mesh.CP))
	instances := m.degree("--num-distributed-optimizer-instances", 1, "mesh.dp_replicate")
	mesh.Replicate = instances
	mesh.DP = m.divide("--expert-model-parallel-size", data, mesh.EP*instances, fmt.Sprintf("data ranks over expert ranks %d and optimizer instances %d", mesh.EP, instances))
	m.vocabulary()
	m.stages()
	m.batch(data)
}

// vocabulary is the padded one, as it is the padded table that costs memory and time there (_vocab_size_with_padding).
func (m *megatronArgs) vocabulary() {
	v := m.int("--vocab-size", 0, "model.vocab")
	if v == 0 {
		if kind := m.text("--tokenizer-type", "GPT2BPETokenizer", "model.vocab"); kind != "GPT2BPETokenizer" {
			v = m.options.vocab()
			if v == 0 {
				m.refuse("--vocab-size", "0", kind+": how many tokens it has is not in the script", "add --vocab-size 32000, or what it has")
				v = 1
			}
		} else {
			v = 50257
		}
	}
	unit := m.degree("--make-vocab-size-divisible-by", 128, "model.vocab") * max(1, m.c.Mesh.TP)
	padded := (v + unit - 1) / max(unit, 1) * unit
	m.c.Model.Vocab = padded
	if padded != v {
		m.differs("--vocab-size", fmt.Sprint(v), fmt.Sprintf("model.vocab = %d, padded to a multiple of %d as it is there", padded, unit))
	}
}

func (o Options) vocab() int {
	if o.Base == nil {
		return 0
	}
	return o.Base.Model.Vocab
}

// batch: samples a step over all ranks, and how many a rank takes at once.
func (m *megatronArgs) batch(data int) {
	micro := m.degree("--micro-batch-size", 1, "pipeline.microbatches")
	global := m.int("--global-batch-size", micro*data, "train.batch")
	for _, name := range []string{"--rampup-batch-size", "--step-batch-size-schedule"} {
		if m.has(name) {
			m.read[name] = true
			m.differs(name, strings.Join(m.value[name], " "), fmt.Sprintf("every step has the last batch, %d samples", global))
		}
	}
	m.c.Train.Batch = global
	m.c.Pipeline.Microbatches = m.divide("--global-batch-size", global, micro*data, fmt.Sprintf("samples over %d data ranks, %d at a time", data, micro))
}

// stages reads how layers lie on pipeline ranks and their chunks; a stage's number grows rank by rank, then chunk by chunk, as here.
func (m *megatronArgs) stages() {
	p, layers := &m.c.Pipeline, m.c.Model.Layers
	pp := max(1, m.c.Mesh.PP)
	p.Schedule, p.Chunks = "1f1b", 0
	chunks := m.degree("--num-virtual-stages-per-pipeline-rank", 1, "pipeline.chunks")
	if per := m.int("--num-layers-per-virtual-pipeline-stage", 0, "pipeline.chunks"); per > 0 {
		chunks = m.divide("--num-layers-per-virtual-pipeline-stage", m.divide("--num-layers", layers, pp, "layers over pipeline ranks"), per, "layers of a pipeline rank over chunks")
	}
	if layout := m.text("--pipeline-model-parallel-layout", "", "pipeline.layers"); layout != "" {
		list, err := parseLayout(layout)
		if err != nil {
			m.refuse("--pipeline-model-parallel-layout", layout, err.Error(), `for example "Et|(tt|)*6tL"`)
			return
		}
		chunks = m.divide("--pipeline-model-parallel-layout", len(list), pp, "stages over pipeline ranks")
		p.Layers = list
	} else {
		p.Layers = m.uneven(pp, chunks)
	}
	if chunks > 1 {
		p.Schedule, p.Chunks = "interleaved", chunks
	}
}

// uneven is the layers of each stage where embedding and loss count as layers, or the ends are given; nil where all stages are alike.
func (m *megatronArgs) uneven(pp, chunks int) []int {
	layers, stages := m.c.Model.Layers, pp*chunks
	first, last := m.int("--decoder-first-pipeline-num-layers", 0, "pipeline.layers"), m.int("--decoder-last-pipeline-num-layers", 0, "pipeline.layers")
	embedding, loss := m.on("--account-for-embedding-in-pipeline-split", "pipeline.layers"), m.on("--account-for-loss-in-pipeline-split", "pipeline.layers")
	if pp == 1 {
		return nil
	}
	if stages > layers+2 { // no stage but the first and the last can do without a layer
		m.refuse("--pipeline-model-parallel-size", fmt.Sprint(pp), fmt.Sprintf("%d layers do not fill %d stages", layers, stages), "use fewer stages")
		return nil
	}
	list := make([]int, stages)
	switch {
	case embedding || loss:
		each := m.divide("--num-layers", layers+count(embedding, loss), stages, "layers, embedding and loss counted, over stages")
		for i := range list {
			list[i] = each
		}
		list[0] -= count(embedding)
		list[stages-1] -= count(loss)
	case first > 0 || last > 0:
		if chunks > 1 {
			m.refuse("--decoder-first-pipeline-num-layers", fmt.Sprint(first), "together with chunks it is not read here", "use --pipeline-model-parallel-layout")
			return nil
		}
		middle := pp - count(first > 0, last > 0)
		if middle < 1 {
			return []int{first, last}
		}
		each := m.divide("--num-layers", layers-first-last, middle, "layers of the pipeline ranks between the ends")
		for i := range list {
			list[i] = each
		}
		if first > 0 {
			list[0] = first
		}
		if last > 0 {
			list[stages-1] = last
		}
	default:
		m.divide("--num-layers", layers, stages, "layers over pipeline stages")
		return nil
	}
	return list
}

// parseLayout reads a layout: stages between bars; E embedding, t a layer, L the loss; x*3 and (...)*3 repeat.
// The result is the layers of each stage.
func parseLayout(text string) ([]int, error) {
	flat, err := unroll(text, 0)
	if err != nil {
		return nil, err
	}
	var list []int
	for i, stage := range strings.Split(flat, "|") {
		n := 0
		for _, c := range stage {
			switch c {
			case 't':
				n++
			case 'E', 'L':
			case ',', ' ':
			default:
				return nil, fmt.Errorf("stage %d: %q is none of E, t, L", i, c)
			}
		}
		list = append(list, n)
	}
	last := len(list) - 1
	if !strings.HasPrefix(strings.TrimSpace(flat), "E") || !strings.Contains(flat[strings.LastIndexByte(flat, '|')+1:], "L") || strings.Count(flat, "E") != 1 || strings.Count(flat, "L") != 1 {
		return nil, fmt.Errorf("of %d stages the first begins with E and the last holds L", last+1)
	}
	return list, nil
}

// maxLayout bounds an unrolled layout in letters.
const maxLayout = 1 << 14

// unroll writes repetitions out.
func unroll(text string, depth int) (string, error) {
	var out strings.Builder
	for i := 0; i < len(text); {
		unit := text[i : i+1]
		i++
		if unit == "(" {
			end := strings.IndexByte(text[i:], ')')
			if end < 0 || depth > 0 || strings.ContainsRune(text[i:i+end], '(') {
				return "", fmt.Errorf("brackets in %q do not match, or stand in one another", text)
			}
			var err error
			if unit, err = unroll(text[i:i+end], depth+1); err != nil {
				return "", err
			}
			i += end + 1
		}
		times := 1
		if i < len(text) && text[i] == '*' {
			j := i + 1
			for j < len(text) && text[j] >= '0' && text[j] <= '9' {
				j++
			}
			n, err := strconv.Atoi(text[i+1 : j])
			if err != nil || n < 1 || n*len(unit) > maxLayout {
				return "", fmt.Errorf("%q: want a number of times after *", text[i:j])
			}
			times, i = n, j
		}
		if out.Len()+times*len(unit) > maxLayout {
			return "", fmt.Errorf("more than %d letters", maxLayout)
		}
		out.WriteString(strings.Repeat(unit, times))
	}
	return out.String(), nil
}
