package main

import (
	"strings"
	"testing"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/console/view"
)

func TestExplainAndStatusTellWhatIsPending(t *testing.T) {
	now, set := trimtab.Units(1), trimtab.Units(3)
	var explained, status, wide strings.Builder
	printExplanation(&explained, &view.Explanation{Workload: "shop", Condition: view.Condition{Resource: "cpu"}, Holds: view.Holds{Allocation: &now, Pending: &set}})
	if !strings.Contains(explained.String(), "set to 3 cores, which is not in force yet") {
		t.Error(explained.String())
	}
	s := &view.Status{Resource: "cpu", Capacity: 8, Workloads: []view.Row{{Name: "shop", Allocation: &now, Pending: &set}}}
	printStatus(&status, s, false)
	printStatus(&wide, s, true)
	for _, text := range []string{status.String(), wide.String()} {
		if !strings.Contains(text, "1 (3 pending)") {
			t.Error(text)
		}
	}
}
