package plan

import (
	"errors"

	"triax/configs"
)

// CheckCluster is what is wrong with the cluster of a configuration, to be said beside what else is.
func CheckCluster(cfg *configs.Config) (ps configs.Problems) {
	_, err := ClusterOf(cfg.Cluster)
	errors.As(err, &ps)
	return ps
}

// ClusterFor is the cluster that a configuration names. Where its section does not say otherwise, a device that would compute in fp32 follows
// train.precision.
func ClusterFor(cfg *configs.Config) (Cluster, error) {
	c, err := ClusterOf(cfg.Cluster)
	if _, says := cfg.Cluster["precision"]; err == nil && !says && c.Precision == "fp32" && cfg.Train.Precision == configs.PrecisionBF16 {
		c.Precision = "bf16"
		c.StateBytes += 4 // the master copy
	}
	return c, err
}
