package quantity

import (
	"cmp"
	"time"
)

// MaxMemoryNeeds bounds the instances whose memory one estimate tells.
const MaxMemoryNeeds = 125

// MemoryNeed is what one instance of a workload uses and needs of memory, in bytes.
type MemoryNeed struct {
	Host string `json:"host,omitempty"`
	// Instance is one of several copies on the host; "": there is one.
	Instance string `json:"instance,omitempty"`
	// Use is its working set, as it was Age seconds ago.
	Use float64 `json:"use"`
	Age float64 `json:"age_s"`
	// Need is the upper bound of its coming use.
	Need float64 `json:"need"`
	// Limit is the least limit in force; nil: there is none, or it is unknown.
	Limit *float64 `json:"limit,omitempty"`
	// Unlearnt says why Need must not lower its limit: too little was seen, or its use grows; "": it
	// may.
	Unlearnt string `json:"unlearnt,omitempty"`
	// Kills is how many of its processes the kernel killed for lack of memory, as far as is known;
	// Killed is when it last did.
	Kills  float64    `json:"kills,omitempty"`
	Killed *time.Time `json:"killed,omitempty"`
	// Short is when it was last short of memory, other than by a kill: near its limit it met that or
	// memory.high, waited for memory, or was about to reach the limit; nil: never.
	Short *time.Time `json:"short,omitempty"`
	// Growth is by how many bytes per second its use grows without an end; 0: it does not. Left is
	// how many seconds it then takes to the limit; 0: there is none.
	Growth float64 `json:"growth,omitempty"`
	Left   float64 `json:"left_s,omitempty"`
	// Why says how the limit that trimtab advises follows from what was seen; "": it is not said of this
	// instance, since the limit of another one is further from what it needs.
	Why string `json:"why,omitempty"`
	// Account compares its limit with its use; nil: it had no limit.
	Account *MemoryAccount `json:"account,omitempty"`
}

// MemoryAccount sums up, over the last 8 days at most, how far the limit of an instance was above and below
// its use, and how far the limit that trimtab would have set from what it had seen before (its need and the
// default margin) was.
type MemoryAccount struct {
	// Seconds is how long limit and use were known. Over and Under are of the limit in force, AdvisedOver
	// and AdvisedUnder of trimtab's, in bytes times seconds.
	Seconds      float64 `json:"seconds"`
	Over         float64 `json:"over_byte_s"`
	Under        float64 `json:"under_byte_s"`
	AdvisedOver  float64 `json:"advised_over_byte_s"`
	AdvisedUnder float64 `json:"advised_under_byte_s"`
	// Kills is how many processes the kernel killed for lack of memory. Prevented of them it killed while
	// trimtab's limit was above the one in force by more than the use ever rose within a minute.
	Kills     float64 `json:"kills,omitempty"`
	Prevented float64 `json:"kills_prevented,omitempty"`
}

// Add adds another account.
func (a *MemoryAccount) Add(o *MemoryAccount) {
	a.Seconds += o.Seconds
	a.Over, a.Under, a.AdvisedOver, a.AdvisedUnder = a.Over+o.Over, a.Under+o.Under, a.AdvisedOver+o.AdvisedOver, a.AdvisedUnder+o.AdvisedUnder
	a.Kills, a.Prevented = a.Kills+o.Kills, a.Prevented+o.Prevented
}

// Numbers are all that it has.
func (a *MemoryAccount) Numbers() []float64 {
	return []float64{a.Seconds, a.Over, a.Under, a.AdvisedOver, a.AdvisedUnder, a.Kills, a.Prevented}
}

// Compare orders needs by host and instance.
func (n *MemoryNeed) Compare(o *MemoryNeed) int {
	return cmp.Or(cmp.Compare(n.Host, o.Host), cmp.Compare(n.Instance, o.Instance))
}
