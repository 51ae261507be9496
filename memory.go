package trimtab

import (
	"cmp"
	"fmt"
	"time"

	"github.com/trimtab/trimtab/internal/valid"
)

// MaxMemoryNeeds bounds the instances whose memory one estimate tells.
const MaxMemoryNeeds = 125

// MemoryNeed is what one instance of a workload uses and needs of memory, in bytes.
type MemoryNeed struct {
	Host string `json:"host,omitempty"`
	// Instance is one of several copies on the host; "": there is one.
	Instance string `json:"instance,omitempty"`
	// Use is its working set, as old as Age.
	Use float64 `json:"use"`
	Age Seconds `json:"age_s"`
	// Need is the upper bound of its coming use.
	Need float64 `json:"need"`
	// Limit is the least limit in force; nil: there is none, or it is unknown.
	Limit *float64 `json:"limit,omitempty"`
	// Unlearnt is empty, or why Need must lower nobody: too little was seen, or its use grows.
	Unlearnt string `json:"unlearnt,omitempty"`
	// Kills is how many of its processes the kernel killed for want of memory, as far as is known;
	// Killed is when it last did.
	Kills  float64    `json:"kills,omitempty"`
	Killed *time.Time `json:"killed,omitempty"`
	// Short is when it last met its limit or memory.high, or waited for memory; nil: it did not.
	Short *time.Time `json:"short,omitempty"`
	// Growth is by how many bytes per second its use grows without an end; 0: it does not. Left is
	// how long it then takes to the limit; 0: there is none.
	Growth float64 `json:"growth,omitempty"`
	Left   Seconds `json:"left_s,omitempty"`
}

// Compare orders needs by host and instance.
func (n *MemoryNeed) Compare(o *MemoryNeed) int {
	return cmp.Or(cmp.Compare(n.Host, o.Host), cmp.Compare(n.Instance, o.Instance))
}

// validateMemory checks what instances need of memory: each is named once.
func (e *Estimate) validateMemory() error {
	if len(e.Memory) > MaxMemoryNeeds {
		return Invalidf("estimate of %s: memory of %d instances, limit %d", e.Workload, len(e.Memory), MaxMemoryNeeds)
	}
	for i := range e.Memory {
		n := &e.Memory[i]
		if len(n.Host) > 253 || len(n.Instance) > 253 || len(n.Unlearnt) > valid.MaxText {
			return Invalidf("estimate of %s: memory of instance %.40q on host %.40q: want names of at most 253 bytes", e.Workload, n.Instance, n.Host)
		}
		if i > 0 && e.Memory[i-1].Compare(n) >= 0 {
			return Invalidf("estimate of %s: memory of %.253s/%.253s given twice, or out of order", e.Workload, n.Host, n.Instance)
		}
		all := []float64{n.Use, float64(n.Age), n.Need, n.Kills, n.Growth, float64(n.Left)}
		if n.Limit != nil {
			all = append(all, *n.Limit)
		}
		for _, v := range all {
			if err := valid.NonNegative(fmt.Sprintf("memory of %s", e.Workload), v); err != nil {
				return err
			}
		}
	}
	return nil
}
