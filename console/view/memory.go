package view

import (
	"cmp"
	"fmt"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/quantity"
)

func memoryText(v float64) string { return trimtab.AmountOf(trimtab.Memory, trimtab.Units(v)) }

// memoryOf says of the instances of which the analyzer says why, what they use and need, and which limit
// follows.
func memoryOf(needs []quantity.MemoryNeed) (all []string) {
	for i := range needs {
		n := &needs[i]
		if n.Why == "" {
			continue
		}
		text := fmt.Sprintf("%s uses %s", cmp.Or(n.Instance, "it"), memoryText(n.Use))
		if n.Limit != nil {
			text += " of a limit of " + memoryText(*n.Limit)
		}
		text += fmt.Sprintf(" and needs up to %s: %s", memoryText(n.Need), n.Why)
		if n.Growth > 0 {
			text += fmt.Sprintf(". It grows by %s a minute and does not stop", memoryText(60*n.Growth))
			if n.Left > 0 {
				text += fmt.Sprintf(": it reaches the limit in %v", trimtab.Seconds(n.Left).Duration().Round(time.Minute))
			}
		}
		if n.Unlearnt != "" {
			text += ". The limit is not lowered: " + n.Unlearnt
		}
		all = append(all, text+".")
	}
	return all
}

// unlearnt says why the need of an instance is not learnt; without a code: that of all is.
func unlearnt(e *trimtab.Estimate) (s situation) {
	for i := range e.Memory {
		switch n := &e.Memory[i]; {
		case n.Growth > 0:
			return situation{code: codeHeld, why: n.Unlearnt}
		case n.Unlearnt != "":
			s = situation{code: codeLearning, why: n.Unlearnt}
		}
	}
	return s
}

// MemoryWorth compares memory limits with the use of instances, over the last 8 days at most.
type MemoryWorth struct {
	quantity.MemoryAccount
	// Instances have an account.
	Instances int `json:"instances"`
}

// memoryWorth sums up the accounts of instances; nil: there is none.
func memoryWorth(needs []quantity.MemoryNeed) *MemoryWorth {
	var w MemoryWorth
	for i := range needs {
		if a := needs[i].Account; a != nil {
			w.Add(a)
			w.Instances++
		}
	}
	if w.Instances == 0 {
		return nil
	}
	return &w
}

// memory lists, for each workload, how far memory limits were from the use, and kills.
func (r *Report) memory() (s Section, ok bool) {
	s = Section{Title: "Memory limits", Text: []string{
		"Means over the instances and the time for which limit and use are known, of the last 8 days at most, whatever the time of the report. Trimtab's limit is what it would have set from what it had seen before, with a margin of 7%. A kill would have been prevented if that limit was above the one in force by more than the use ever rose within a minute."},
		Head: []string{"Workload", "Instances", "Over-provided", "Under-provided", "Over by trimtab", "Under by trimtab", "Kills", "Would have been prevented"}}
	for i := range r.Workloads {
		w := r.Workloads[i].Memory
		if w == nil {
			continue
		}
		row := []string{r.Workloads[i].Workload, fmt.Sprint(w.Instances), Missing, Missing, Missing, Missing, fmt.Sprintf("%.0f", w.Kills), fmt.Sprintf("%.0f", w.Prevented)}
		if w.Seconds > 0 {
			for k, v := range []float64{w.Over, w.Under, w.AdvisedOver, w.AdvisedUnder} {
				row[2+k] = memoryText(v / w.Seconds)
			}
		}
		s.Rows = append(s.Rows, row)
	}
	return s, len(s.Rows) > 0
}
