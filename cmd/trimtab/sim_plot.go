package main

import "github.com/trimtab/trimtab/sim/cilantro"

// plot draws the figures.
func (c *simCilantroCmd) plot(*cilantro.Experiment, []cilantro.Outcome, []cilantro.Summary) error {
	return nil
}
