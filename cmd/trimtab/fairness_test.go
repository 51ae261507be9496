package main

import (
	"strings"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/console/view"
)

func TestFairnessIsAnsweredWithANumber(t *testing.T) {
	half := 0.5
	a := view.Audited{Plan: "3-7", Time: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Objective: "drf", Audit: &trimtab.Audit{
		Now:       trimtab.Fairness{Envy: 0.25, Envious: 1, Shortfall: 0.125, Short: 2, Slack: 0.01, Least: 0.5},
		Target:    &trimtab.Fairness{Least: 0.75},
		Resources: []trimtab.AuditedResource{{Resource: "memory", Capacity: 16 << 30, Used: 3 << 29, Demanded: 32 << 30, Binds: 1}},
		Workloads: []trimtab.AuditedWorkload{{Workload: "a", Entitlement: 0.5, Share: 0.75, Dominant: "cpu", Satisfaction: &half, Binding: "memory", Envy: 0.25, Envies: "b"},
			{Workload: "b", Entitlement: 0.5, Share: 0.1, Dominant: "cpu"}}, Omitted: 3}}
	var b strings.Builder
	printFairness(&b, &a, false)
	for _, want := range []string{
		"now: 2 worse off than with their entitlement, by up to 12.5%; 1 envy another's allocation, by up to 25%; up to 1% could be gained from unallocated capacity; the least satisfied has 50%",
		"what drf wants: fair: nobody is worse off", "the least satisfied has 75%", "plan 3-7", "1.5GiB", "32GiB", "and 3 more",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
	lines := strings.Split(b.String(), "\n")
	for _, line := range lines {
		if f := strings.Fields(line); len(f) > 0 && f[0] == "b" && (f[4] != view.Missing || f[6] != view.Missing) {
			t.Errorf("b's demand is unknown, and it says %q", line)
		}
	}
}
