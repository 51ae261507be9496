package actuator

import (
	"errors"
	"fmt"
	"strings"

	"github.com/trimtab/trimtab"
)

// Restored is the result of restoring one baseline.
type Restored struct {
	trimtab.KnobID
	Knob string `json:"knob"`
	// Status is Written, Equal (the knob had the baseline already), Refused (another program
	// changed the knob, or it is gone) or Failed.
	Status   trimtab.Status `json:"status"`
	Found    trimtab.Amount `json:"found"`
	Baseline trimtab.Amount `json:"baseline"`
	Reason   string         `json:"reason,omitempty"`

	entry *entry
	// theirs says that another program changed the amount.
	theirs bool
}

// Report is the result of a restore.
type Report struct {
	Items []Restored `json:"items"`
	// Damaged counts places of the journal that could not be read, Damage says what is wrong with
	// its copies. Lost says that no copy is complete, so that baselines may be missing.
	Damaged int      `json:"damaged,omitempty"`
	Damage  []string `json:"damage,omitempty"`
	Lost    bool     `json:"lost,omitempty"`
	// Left counts the baselines that were not restored for lack of time. They are still in the
	// journal.
	Left int `json:"left,omitempty"`
}

// maxReported bounds the failures that an error lists.
const maxReported = 20

// Err returns the joined failures, and an error if baselines are left. A refused knob is not a
// failure.
func (r Report) Err() error {
	var errs []error
	failed := 0
	for _, i := range r.Items {
		if i.Status != trimtab.Failed {
			continue
		}
		if failed++; failed <= maxReported {
			errs = append(errs, fmt.Errorf("restore %s: %s", i.Name(), i.Reason))
		}
	}
	if failed > maxReported {
		errs = append(errs, fmt.Errorf("restore: %d more failed", failed-maxReported))
	}
	if r.Left > 0 {
		errs = append(errs, fmt.Errorf("%d baselines are left in the journal, which time did not suffice for: trimtab puts them back when it starts again, and `trimtab restore` without a start", r.Left))
	}
	return errors.Join(errs...)
}

// add adds the results of another part of the same restore.
func (r *Report) add(more Report) {
	r.Items, r.Left = append(r.Items, more.Items...), more.Left
}

// String prints a line per knob.
func (r Report) String() string {
	var b strings.Builder
	for _, i := range r.Items {
		fmt.Fprintf(&b, "%s %s (%s): ", i.Workload, i.Resource, i.Knob)
		switch i.Status {
		case trimtab.Written:
			fmt.Fprintf(&b, "restored from %v to %v\n", i.Found, i.Baseline)
			if i.Reason != "" {
				fmt.Fprintf(&b, "  as far as it goes: %s\n", i.Reason)
			}
		case trimtab.Equal:
			fmt.Fprintf(&b, "already at %v\n", i.Baseline)
		default:
			fmt.Fprintf(&b, "%s: %s\n", i.Status, i.Reason)
		}
	}
	if r.Left > 0 {
		fmt.Fprintf(&b, "%d are left in the journal: run it again\n", r.Left)
	}
	if r.Damaged > 0 {
		fmt.Fprintf(&b, "%d damaged places in the journal were left out", r.Damaged)
		if len(r.Damage) > 0 {
			fmt.Fprintf(&b, ": %s", strings.Join(r.Damage, "; "))
		}
		b.WriteString("\n")
	}
	if r.Lost {
		b.WriteString("no copy of the journal is whole: a limit that is not listed here may still be as trimtab set it\n")
	}
	return b.String()
}
