package train

import (
	"fmt"
	"reflect"
	"slices"

	"triax/checkpoint"
	"triax/checkpoint/safetensors"
	"triax/configs"
	"triax/nn"
)

// resumable: a checkpoint belongs to this run as far as its results depend on it.
func resumable(c *checkpoint.Checkpoint, cfg *configs.Config, corpus string) error {
	was, err := configs.Parse([]byte(c.Config), nil)
	if err != nil {
		return fmt.Errorf("%s: its configuration: %w", c.Dir, err)
	}
	var ps configs.Problems
	same := func(field string, now, then any, why string) {
		if fmt.Sprint(now) != fmt.Sprint(then) {
			ps = append(ps, configs.Problem{Field: field, Value: fmt.Sprint(now), Rule: "the run that is resumed has another, and " + why, Hint: fmt.Sprintf("use %v", then)})
		}
	}
	const data = "goes on with other data"
	same("train.seed", cfg.Train.Seed, was.Train.Seed, data)
	same("train.batch", cfg.Train.Batch, was.Train.Batch, data)
	same("data.last_batch", cfg.Data.LastBatch, was.Data.LastBatch, data)
	same("optim.rule", cfg.Optim.Rule, was.Optim.Rule, "other states")
	sameModel(cfg.Model, was.Model, same)
	if cfg.Train.Device != "float64" && holds(c, safetensors.F64) {
		ps = append(ps, configs.Problem{Field: "train.device", Value: cfg.Train.Device, Rule: "the checkpoint is in float64 and would be rounded", Hint: "use float64"})
	}
	if c.Corpus != corpus {
		ps = append(ps, configs.Problem{Field: "data.source", Value: fmt.Sprint(cfg.Data.Source), Rule: "its tokens are not those that the run was trained on", Hint: "use the same files"})
	}
	if c.Step >= cfg.Train.Steps {
		ps = append(ps, configs.Problem{Field: "train.steps", Value: fmt.Sprint(cfg.Train.Steps), Rule: fmt.Sprintf("the checkpoint has done %d", c.Step), Hint: fmt.Sprintf("use more, for example %d", 2*c.Step)})
	}
	if len(ps) > 0 {
		return ps
	}
	return nil
}

// mayChange are the keys of [model] that a resumed run may change: they say how the model is computed or taught, not what it is.
var mayChange = map[string]bool{
	"preset": true, "from": true, "init_std": true, "dropout": true, "recompute": true, "recompute_layers": true, "capacity_factor": true, "aux_loss": true,
}

// sameModel compares every other key, also those that no shape shows: heads, constants of norms, rotary positions.
func sameModel(now, then nn.Config, same func(field string, now, then any, why string)) {
	a, b := reflect.ValueOf(now), reflect.ValueOf(then)
	for i := range a.NumField() {
		if key := a.Type().Field(i).Tag.Get("toml"); !mayChange[key] {
			same("model."+key, a.Field(i).Interface(), b.Field(i).Interface(), "its weights are of that model")
		}
	}
}

// holds tells whether a checkpoint has elements of a type.
func holds(c *checkpoint.Checkpoint, d safetensors.DType) bool {
	return slices.ContainsFunc(c.Entries, func(e checkpoint.Entry) bool { return e.DType == d })
}
