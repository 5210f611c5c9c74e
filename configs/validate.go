package configs

// Validate returns Problems, all there are, or nil.
func (c *Config) Validate() error {
	if ps := c.check(); len(ps) > 0 {
		return ps
	}
	return nil
}

// check runs the rules of each section, and those between sections. The latter are asked only where every section that they
// join is sound by itself.
func (c *Config) check() Problems {
	var ps Problems
	joined := 0 // problems of the sections that rules between sections read
	for _, section := range []struct {
		rules  func() Problems
		joined bool
	}{
		{c.checkModel, true}, {c.checkData, false}, {c.checkMesh, true}, {c.checkPipeline, true},
		{c.checkZero, false}, {c.checkOptim, false}, {c.checkTrain, true},
	} {
		found := section.rules()
		ps = append(ps, found...)
		if section.joined {
			joined += len(found)
		}
	}
	if joined > 0 {
		return ps
	}
	return append(ps, c.checkCuts()...)
}
