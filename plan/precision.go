package plan

import "triax/configs"

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
