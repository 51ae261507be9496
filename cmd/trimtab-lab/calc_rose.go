package main

import "github.com/trimtab/trimtab/lab/calc"

// calcLLACmd is `trimtab-lab calc lla`.
type calcLLACmd struct{}

const llaExample = `{"data": [0.41, 0.39, 0.44, 0.97, 0.42, 0.38, 0.4, 0.43, 0.4, 0.41], "k": 5, "p": 1.5, "quartile": "linear"}`

// Example is shown by --help.
func (calcLLACmd) Example() string { return "echo '" + llaExample + "' | trimtab-lab calc lla" }

// Run computes.
func (calcLLACmd) Run(t terminal) error { return calculate(t, calc.LLA, llaExample) }
