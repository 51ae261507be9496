package main

import "github.com/trimtab/trimtab/lab/calc"

// calcLearnCmd is `trimtab-lab calc learn`.
type calcLearnCmd struct{}

const learnExample = `{"learner": "default", "level": 0.9, "observations": [{"time": 0, "allocation": 4, "load": 20, "performance": 0.93, "requests": 200}], "query": [{"allocation": 5, "load": 20}]}`

// Example is shown by --help.
func (calcLearnCmd) Example() string { return "echo '" + learnExample + "' | trimtab-lab calc learn" }

// Run computes.
func (calcLearnCmd) Run(t terminal) error { return calculate(t, calc.Learn, learnExample) }
