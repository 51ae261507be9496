package main

import "github.com/trimtab/trimtab/lab/calc"

// calcContributionCmd is `trimtab-lab calc contribution`.
type calcContributionCmd struct{}

const contributionExample = `{"servpods": [{"name": "tomcat", "sojourn": [3, 4, 9]}, {"name": "mysql", "sojourn": [2, 5, 20]}], "tail": [40, 60, 210]}`

// Example is shown by --help.
func (calcContributionCmd) Example() string {
	return "echo '" + contributionExample + "' | trimtab-lab calc contribution"
}

// Run computes.
func (calcContributionCmd) Run(t terminal) error {
	return calculate(t, calc.Contribution, contributionExample)
}

// calcMLRQCmd is `trimtab-lab calc mlrq`.
type calcMLRQCmd struct{}

const mlrqExample = `{"predictable": [{"id": "sort", "L": 12, "U": 3, "attained": 40}], "unpredictable": [{"id": "train", "U": 90, "attained": 300}], "contributions": [0.3], "servers": [["sort", "train"]]}`

// Example is shown by --help.
func (calcMLRQCmd) Example() string { return "echo '" + mlrqExample + "' | trimtab-lab calc mlrq" }

// Run computes.
func (calcMLRQCmd) Run(t terminal) error { return calculate(t, calc.MLRQ, mlrqExample) }
