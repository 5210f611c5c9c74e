package configs

// Validate returns Problems, all there are, or nil.
func (c *Config) Validate() error {
	if ps := c.check(); len(ps) > 0 {
		return ps
	}
	return nil
}

// check runs the rules of each section and those between sections. The latter are asked only where the
// sections they join are sound by themselves.
func (c *Config) check() Problems {
	var ps Problems
	for _, rules := range []func() Problems{
		c.checkModel, c.checkData, c.checkMesh, c.checkPipeline, c.checkZero, c.checkOptim, c.checkTrain,
	} {
		ps = append(ps, rules()...)
	}
	if len(ps) > 0 {
		return ps
	}
	return c.checkCuts()
}
