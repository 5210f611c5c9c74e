package dialect

import (
	"fmt"
	"math"
	"strconv"

	"triax/configs"
	"triax/zero"
)

// Export writes a configuration as another system reads it: a launch script for Megatron-LM, JSON for DeepSpeed, TOML for torchtitan. What that
// system cannot do comes back at once as configs.Problems with our own field names.
func Export(to System, c *configs.Config) (string, error) {
	if err := c.Validate(); err != nil {
		return "", err
	}
	w := &writer{c: configs.Resolved(c)}
	if c.Train.Device == "float64" {
		w.no("train.device", c.Train.Device, "64-bit training exists here only", "use float32")
	}
	var text string
	switch to {
	case Megatron:
		text = w.megatron()
	case DeepSpeed:
		text = w.deepspeed()
	case Torchtitan:
		text = w.torchtitan()
	default:
		w.no("to", string(to), "no such system", "one of megatron, deepspeed, torchtitan")
	}
	if len(w.problems) > 0 {
		return "", w.problems
	}
	return text, nil
}

type writer struct {
	c        *configs.Config
	problems configs.Problems
}

func (w *writer) no(field string, value any, rule, hint string) {
	w.problems = append(w.problems, configs.Problem{Field: field, Value: fmt.Sprint(value), Rule: rule, Hint: hint})
}

// refuse is no where wrong holds.
func (w *writer) refuse(wrong bool, field string, value any, rule, hint string) {
	if wrong {
		w.no(field, value, rule, hint)
	}
}

// perNode is how many ranks share a node.
func (w *writer) perNode() int {
	if n, ok := w.c.Cluster["gpus_per_node"].(int64); ok && n > 0 && w.c.Mesh.World()%int(n) == 0 {
		return int(n)
	}
	return min(8, w.c.Mesh.World())
}

// precision is bf16 unless the cluster says otherwise.
func (w *writer) precision() string {
	if p, ok := w.c.Cluster["precision"].(string); ok {
		return p
	}
	return "bf16"
}

// micro is the samples that a rank takes at once; 0, and a problem, where they are not a whole number.
func (w *writer) micro() int {
	c := w.c
	n := c.Mesh.Replicas() * c.Pipeline.Microbatches
	w.refuse(c.Train.Batch%n != 0, "train.batch", c.Train.Batch, fmt.Sprintf("%d data ranks take %d microbatches of equal size there", c.Mesh.Replicas(), c.Pipeline.Microbatches),
		fmt.Sprintf("use %d", (c.Train.Batch/n+1)*n))
	return c.Train.Batch / n
}

// bucket is the size of buckets in elements, written out where it is the default, as theirs is another.
func (w *writer) bucket() int {
	if n := w.c.Zero.BucketElements; n > 0 {
		return n
	}
	return zero.DefaultBucket
}

// even says whether layers are cut in equal parts.
func even(list []int) bool {
	for _, n := range list {
		if n != list[0] {
			return false
		}
	}
	return true
}

// decimal prints a number as short as it reads back to the same.
func decimal(x float64) string {
	if x == math.Trunc(x) && math.Abs(x) < 1e6 {
		return strconv.FormatFloat(x, 'f', 1, 64)
	}
	return strconv.FormatFloat(x, 'g', -1, 64)
}
