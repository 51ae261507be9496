package machines

import (
	"fmt"
	"math"
	"time"

	"github.com/trimtab/trimtab"
)

// MaxMachines bounds a list of machines, whoever sends it.
const MaxMachines = 1 << 24

// Dimension is a quantity that machines report, of the load (cpu, memory, load average, disk,
// network) or of the queue (running and waiting tasks).
type Dimension struct {
	// Name is for people.
	Name string
	// Bounded: a machine cannot have more than its capacity (cpu, memory; not the load average);
	// more is invalid, and so is a value without a capacity.
	Bounded bool
	// MaxCapacity is the largest that a machine's capacity can be; 0 is no
	// bound. Loads are normalised by the largest, so that without a bound one
	// machine can hide the load of all others from the thresholds.
	MaxCapacity float64
	// Threshold: a machine over it is no candidate. nil: none.
	Threshold *float64
	// Load and Queue are the weights in lIndex and qIndex, finite; nil: the
	// dimension is not in it.
	Load, Queue *float64
}

// used says whether the filter reads the dimension.
func (d *Dimension) used() bool { return d.Threshold != nil || d.Load != nil || d.Queue != nil }

// Config configures an [Index].
type Config struct {
	// Dimensions, in the order of [Report.Load].
	Dimensions []Dimension
	// Timeout: a machine that has said nothing for longer is disconnected.
	// > 0.
	Timeout time.Duration
	// SettleAfter is how long a machine must be connected between two losses, for the second not
	// to count as flapping. 0: none counts.
	SettleAfter time.Duration
	// RatingPeriod is how long the penalties of a job count after its last rating; 0: for ever.
	RatingPeriod time.Duration
}

func (c *Config) check() error {
	if c.Timeout <= 0 || c.SettleAfter < 0 || c.RatingPeriod < 0 {
		return trimtab.Invalidf("time-out %v, settle after %v, rating period %v: want > 0, >= 0, >= 0", c.Timeout, c.SettleAfter, c.RatingPeriod)
	}
	for i := range c.Dimensions {
		d := &c.Dimensions[i]
		for _, w := range []*float64{d.Threshold, d.Load, d.Queue, &d.MaxCapacity} {
			if w != nil && (math.IsNaN(*w) || math.IsInf(*w, 0)) {
				return trimtab.Invalidf("dimension %.60q: threshold, weights and largest capacity: want finite numbers, not %v", d.Name, *w)
			}
		}
	}
	return nil
}

// Policy says how candidates are selected.
type Policy int

// The policies.
const (
	// MMF is ROSE's multi-phase filtering.
	MMF Policy = iota
	// RB selects at random, whatever the load.
	RB
	// SLB selects by the lowest lIndex only.
	SLB
	// QLB selects by the lowest qIndex only.
	QLB
)

// String names the policy as the paper does.
func (p Policy) String() string {
	names := [...]string{"MMF", "RB", "SLB", "QLB"}
	if p < 0 || int(p) >= len(names) {
		return fmt.Sprintf("policy %d", int(p))
	}
	return names[p]
}

// Mode is the cluster's switch between use and responsiveness.
type Mode int

// The modes.
const (
	// UP prioritises utilization: batch only.
	UP Mode = iota
	// RP prioritises the responsiveness of long-running applications: B0 counts.
	RP
)

// Rule configures one call of [Index.Filter].
type Rule struct {
	Policy Policy
	// Mode is read by MMF only: the baselines know no counters.
	Mode Mode
	// Limit is L_max, the most candidates, >= 0. Widen is d: ceil(d L_max)
	// machines pass by load before the queue decides; finite, >= 0, MMF only.
	Limit int
	Widen float64
	// WorstRated is the K of B1, WorstCPI and WorstMPKI those of B0; all >= 0.
	WorstRated, WorstCPI, WorstMPKI int
	// Strict fills B1 with machines without a penalty, too.
	Strict bool
	// Own compares the thresholds with the machine's own capacity as well. By the paper's
	// normalisation a machine of half the largest size never exceeds 0.5.
	Own bool
	// NeedCounters: in mode RP a machine without CPI or MPKI is no candidate.
	NeedCounters bool
}

func (r *Rule) check() error {
	if r.Policy < MMF || r.Policy > QLB || r.Mode < UP || r.Mode > RP {
		return trimtab.Invalidf("policy %d, mode %d: want one of the constants", int(r.Policy), int(r.Mode))
	}
	if r.Limit < 0 || r.WorstRated < 0 || r.WorstCPI < 0 || r.WorstMPKI < 0 {
		return trimtab.Invalidf("limit %d, K %d, %d and %d: want >= 0", r.Limit, r.WorstRated, r.WorstCPI, r.WorstMPKI)
	}
	if !(r.Widen >= 0 && r.Widen <= math.MaxFloat64) {
		return trimtab.Invalidf("d %v: want a finite number >= 0", r.Widen)
	}
	return nil
}

// Reason is a set of reasons why a machine is no candidate.
type Reason uint8

// The reasons; the first four are the lists B0 to B3.
const (
	// Interferes: among the highest CPI or MPKI (B0).
	Interferes Reason = 1 << iota
	// WeakRated: among the lowest scores (B1).
	WeakRated
	// Disconnected: it has sent no report for the time-out, or none ever, or was declared so (B2).
	Disconnected
	// Overloaded: over a threshold (B3).
	Overloaded
	// Missing: a value that the policy reads is missing.
	Missing
	// Unsettled: it was lost soon after it came, and has not been connected for long enough
	// since.
	Unsettled
)

// Result is the selection of one [Index.Filter].
type Result struct {
	// Candidates are positions in the list: by ascending qIndex (MMF, QLB),
	// lIndex (SLB), or in random order (RB).
	Candidates []uint32
	// Why says for each position of the list why it cannot be a candidate; 0: it could, and was
	// only ranked too low. It belongs to the index, and is valid until the next call.
	Why []Reason
}
