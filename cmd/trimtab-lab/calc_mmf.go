package main

import "github.com/trimtab/trimtab/lab/calc"

// calcMMFCmd is `trimtab-lab calc mmf`.
type calcMMFCmd struct{}

const mmfExample = `{"machines": [{"id": "a", "load": {"cpu": 4, "wait": 1}, "capacity": {"cpu": 16}}, {"id": "b", "load": {"cpu": 9, "wait": 0}, "capacity": {"cpu": 32}}], "jobs": [{"tasks": [{"machine": "b", "status": "killed"}]}], "rp_oversubscription": false, "K": 1, "thresholds": {"cpu": 0.9}, "load_filter": {"cpu": 1}, "queue_filter": {"wait": 1}, "L_max": 1}`

// Example is shown by --help.
func (calcMMFCmd) Example() string { return "echo '" + mmfExample + "' | trimtab-lab calc mmf" }

// Run computes.
func (calcMMFCmd) Run(t terminal) error { return calculate(t, calc.MMF, mmfExample) }
