package plan

import "fmt"

// Ranking prints the first of a list of choices, and beside each that is not the first why it loses: the part of the step that grows most.
func Ranking(list []Choice, show int) string {
	rows := [][]string{{"", "layout", "step", "tokens/s", "MFU", "bubble", "memory", "why it is behind"}}
	for i, x := range list {
		if i == show {
			break
		}
		p := x.Plan
		why := ""
		if i > 0 {
			why = loss(list[0].Plan, p)
		}
		rows = append(rows, []string{fmt.Sprint(i + 1), p.Layout, Seconds(p.Step.Seconds), fmt.Sprintf("%.0f", p.TokensPerS),
			percent(p.MFU), percent(p.Step.Bubble), Bytes(p.Memory[p.Worst].Peak), why})
	}
	return table(rows)
}

// loss names what costs p most more than the best.
func loss(best, p *Plan) string {
	part, most := "", 0.0
	for _, c := range []struct {
		name string
		x    float64
	}{
		{"compute", p.Step.Compute - best.Step.Compute},
		{"communication inside layers", p.Step.Tensor - best.Step.Tensor},
		{"communication of gradients and parameters", p.Step.Data - best.Step.Data},
		{"update", p.Step.Optimizer - best.Step.Optimizer},
		{"idle", p.Step.Idle - best.Step.Idle},
	} {
		if c.x > most {
			part, most = c.name, c.x
		}
	}
	if part == "" {
		return "the same time"
	}
	return fmt.Sprintf("%s: +%s", part, Seconds(most))
}
