package main

import "github.com/trimtab/trimtab/internal/calc"

// calcLearnCmd is `trimtab calc learn`.
type calcLearnCmd struct{}

const learnExample = `{"learner": "default", "level": 0.9, "observations": [{"time": 0, "allocation": 4, "load": 20, "performance": 0.93, "requests": 200}], "query": [{"allocation": 5, "load": 20}]}`

// Example is shown by --help.
func (calcLearnCmd) Example() string { return "echo '" + learnExample + "' | trimtab calc learn" }

// Run computes.
func (calcLearnCmd) Run(t terminal) error { return calculate(t, calc.Learn, learnExample) }
