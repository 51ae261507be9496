package main

import (
	"os"

	"github.com/trimtab/trimtab/collector/perf"
)

// perfCounterCmd is the hidden child process of an agent that counts performance events. It alone
// has CAP_PERFMON, and no other capability.
type perfCounterCmd struct {
	Root string `arg:"" optional:"" help:"Hierarchy of the control groups that are counted."`
}

// Run counts until its standard input ends.
func (c *perfCounterCmd) Run() error {
	if err := perf.Confine(); err != nil {
		return err
	}
	waitLean()
	return perf.Serve(c.Root, os.Stdin, os.Stdout)
}
