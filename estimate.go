package trimtab

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/trimtab/trimtab/internal/valid"
	"github.com/trimtab/trimtab/quantity"
)

// MaxResources bounds the resources of one pool.
const MaxResources = 64

// Input is one value that a decision used, with its age.
type Input struct {
	Name string `json:"name"`
	// Value is finite; it is 0 and means nothing when Missing is set.
	Value float64 `json:"value"`
	// Age is how old the value was at the time of the decision.
	Age Seconds `json:"age_s"`
	// Source says where it came from: "spans", "prometheus", "cgroup".
	Source string `json:"source,omitempty"`
	// Missing is empty, or the reason why there was no value.
	Missing string `json:"missing,omitempty"`
}

// LoadMissing reports whether no recent measurement of the load exists: then Load continues from
// older ones.
func (e *Estimate) LoadMissing() bool {
	return e.Hold != nil && e.Hold.Input == string(quantity.Load) ||
		slices.ContainsFunc(e.Inputs, func(in Input) bool { return in.Name == string(quantity.Load) && in.Missing != "" })
}

// Shed returns how many requests per second gates refuse, of all classes.
func (e *Estimate) Shed() (sum float64) {
	for _, class := range slices.Sorted(maps.Keys(e.Refused)) {
		sum += e.Refused[class]
	}
	return min(sum, math.MaxFloat64)
}

// InputsAt returns the inputs as old as they are at that time.
func (e *Estimate) InputsAt(now time.Time) []Input { return aged(e.Inputs, now.Sub(e.Time)) }

// CountersAt returns the counters as old as they are at that time.
func (e *Estimate) CountersAt(now time.Time) []Input { return aged(e.Counters, now.Sub(e.Time)) }

func aged(inputs []Input, later time.Duration) []Input {
	in := append([]Input{}, inputs...)
	for i := range in {
		in[i].Age = max(0, in[i].Age+SecondsOf(later))
	}
	return in
}

// Waits says in a sentence what the kernel saw waiting last; "": nothing that it was asked for.
func (e *Estimate) Waits() string {
	var queued, waited float64
	for _, in := range e.Inputs {
		switch quantity.Quantity(in.Name) {
		case quantity.Queued:
			queued = in.Value
		case quantity.Waited:
			waited = in.Value
		}
	}
	switch {
	case queued == 1:
		return "1 connection waits to be accepted"
	case queued > 0:
		return fmt.Sprintf("%.0f connections wait to be accepted", queued)
	case waited >= 10:
		return fmt.Sprintf("on average %.0f of its threads waited for a CPU", waited)
	case waited >= 0.1:
		return fmt.Sprintf("on average %.2g of its threads waited for a CPU", waited)
	}
	return ""
}

// LoadShare is the share of its workload's load that one instance serves.
type LoadShare struct {
	Host string `json:"host"`
	// Instance is one of several copies on the host; "": there is one.
	Instance string `json:"instance,omitempty"`
	// Share is in (0, 1]; those of a workload add up to at most 1.
	Share float64 `json:"share"`
}

// Compare orders shares by host and instance.
func (s LoadShare) Compare(t LoadShare) int {
	return cmp.Or(cmp.Compare(s.Host, t.Host), cmp.Compare(s.Instance, t.Instance))
}

// LoadForecast is the forecast of the load in the coming round, in requests per second.
type LoadForecast struct {
	// Now is what was measured last, Mean what is expected of the round.
	Now  float64 `json:"now"`
	Mean float64 `json:"mean"`
	// Upper bounds the highest load of the whole round at Level.
	Upper float64 `json:"upper"`
	Level float64 `json:"level"`
	// Model names the forecaster; "abstain" when it is no better than naive.
	Model string `json:"model"`
	// Later bounds the highest load of the next Within, which is longer than a round, in the same
	// way, for instances that need that long to start. 0: not asked for.
	Later  float64 `json:"later,omitempty"`
	Within Seconds `json:"within_s,omitempty"`
}

// Estimate is all that the planner knows of one workload.
type Estimate struct {
	Workload string    `json:"workload"`
	Time     time.Time `json:"time"`
	// Curve is over the pool's first resource; nil while nothing was learnt.
	Curve *Curve `json:"curve,omitempty"`
	// Curves are over the further resources of the pool, by name, each as if no other resource
	// were short; empty if one is pooled.
	Curves map[string]*Curve `json:"curves,omitempty"`
	// Fixed is the performance of Allocation under the load of the latest report if the quota is
	// fixed at it, for a workload whose quota a fast loop moves; nil: unknown.
	Fixed *Band `json:"fixed,omitempty"`
	// Load is nil while no load was seen.
	Load *LoadForecast `json:"load,omitempty"`
	// Performance is the latest report, in the unit of the SLO; nil: none.
	Performance *float64 `json:"performance,omitempty"`
	// Requests is how many requests Performance is the share of; 0: it is none.
	Requests float64 `json:"requests,omitempty"`
	// Window is how long before its time Performance covers, if reports overlap: requests are
	// then in several of them. 0: each report has its own requests.
	Window Seconds `json:"window_s,omitempty"`
	// Newer are the requests since that report that have come so far: a report waits for all of
	// its own. The second with the most misses does not count, since it may be a short burst.
	// Nil: unknown, or too few.
	Newer *Part `json:"newer,omitempty"`
	// Latency holds the latest interval's latencies in seconds by name ("p50", "p95", "p99");
	// absent ones were not measured.
	Latency map[string]Seconds `json:"latency_s,omitempty"`
	// Observed is what was seen of a service that has no SLO; nil for others.
	Observed *Observed `json:"observed,omitempty"`
	// Refused is how many requests per second of the latest report a gate did not pass on to the
	// workload, by class: part of Load.Now, and not in time. Empty: none, or no gate tells.
	Refused map[string]float64 `json:"refused,omitempty"`
	// Backlog is the work that waits besides what arrives, in the unit of the
	// first resource times seconds: so much must be worked off. Nil: not known.
	Backlog *float64 `json:"backlog,omitempty"`
	// Stopped is for how many seconds in a row, up to the newest sample, the limit has throttled
	// the workload, if Backlog is unknown.
	Stopped Seconds `json:"stopped_s,omitempty"`
	// Starved is for how many seconds, up to the newest sample, the workload used all that it had
	// and waited: its limit, or that of the group above, throttled it in nearly all periods, its
	// threads waited for a CPU, or connections to be accepted ([Estimate.Waits]). More is asked
	// of it than it can do, whatever its spans show: Performance and Load then only cover
	// requests that were answered. 0: it is not starved.
	Starved Seconds `json:"starved_s,omitempty"`
	// Cost is the work of one request, in the same unit; nil: not known.
	Cost *float64 `json:"cost,omitempty"`
	// Allocation is what the workload had in the latest report, of the first resource; nil:
	// unknown. Allocations has the further resources.
	Allocation  *float64           `json:"allocation,omitempty"`
	Allocations map[string]float64 `json:"allocations,omitempty"`
	// Shares are the shares of the load that the instances serve, in order of host and instance;
	// empty: unknown, and then they are assumed to be equal.
	Shares []LoadShare `json:"shares,omitempty"`
	// Reports is how many observations the model holds.
	Reports int `json:"reports"`
	// Model names learner, version and confidence: "bintree/1".
	Model string `json:"model"`
	// Hold is nil, or the reason why this workload must not be lowered: input is missing, stale
	// or contradictory.
	Hold *Held `json:"hold,omitempty"`
	// Fallback is empty, or the operator's declaration that now gives the curve: "proxy",
	// "profile", "demand". Together with a Hold it may raise the workload, never lower it.
	Fallback string  `json:"fallback,omitempty"`
	Inputs   []Input `json:"inputs,omitempty"`
	// Counters are the newest performance counters, and their substitutes: over several instances
	// the sum, or for ratios the highest. No estimate is made of them.
	Counters []Input `json:"counters,omitempty"`
	// Memory is what the instances need of it, in order of host and instance; an instance that is
	// left out is unknown.
	Memory []quantity.MemoryNeed `json:"memory,omitempty"`
	// Exemplars are the slowest requests of the latest interval.
	Exemplars []Exemplar `json:"exemplars,omitempty"`
	// Notes explain load and performance to people when these are not what they expect: how late
	// spans come, what does not count. At most MaxNotes.
	Notes []string `json:"notes,omitempty"`
}

// MaxNotes bounds the notes of an estimate.
const MaxNotes = 5

// Kind returns KindEstimate.
func (e *Estimate) Kind() Kind { return KindEstimate }

// Key returns the workload.
func (e *Estimate) Key() string { return e.Workload }

// validateNotes bounds latencies and notes, and checks the requests since the report.
func (e *Estimate) validateNotes() error {
	switch {
	case len(e.Latency) > maxLatencies:
		return Invalidf("estimate of %s: %d latencies, limit %d", e.Workload, len(e.Latency), maxLatencies)
	case len(e.Notes) > MaxNotes:
		return Invalidf("estimate of %s: %d notes, limit %d", e.Workload, len(e.Notes), MaxNotes)
	}
	if err := validateRefused("estimate of "+e.Workload, e.Refused); err != nil {
		return err
	}
	if err := e.Newer.validate(); err != nil {
		return fmt.Errorf("estimate of %s: %w", e.Workload, err)
	}
	for _, note := range e.Notes {
		if len(note) > valid.MaxText {
			return Invalidf("estimate of %s: a note of %d bytes, limit %d", e.Workload, len(note), valid.MaxText)
		}
	}
	return nil
}

// Validate checks every number.
func (e *Estimate) Validate() error {
	if err := valid.Named("estimate of workload", e.Workload); err != nil {
		return err
	}
	if e.Time.IsZero() {
		return Invalidf("estimate of %s: no time", e.Workload)
	}
	if len(e.Model)+len(e.Fallback) > valid.MaxText {
		return valid.Texts("estimate of "+e.Workload, e.Model, e.Fallback)
	}
	if e.Hold != nil {
		if err := e.Hold.validate("estimate of " + e.Workload); err != nil {
			return err
		}
	}
	if err := e.validateNotes(); err != nil {
		return err
	}
	if e.Curve != nil {
		if err := e.Curve.Validate(); err != nil {
			return err
		}
	}
	if err := e.validateFurther(); err != nil {
		return err
	}
	if l := e.Load; l != nil {
		for _, v := range []float64{l.Now, l.Mean, l.Upper, l.Later, float64(l.Within)} {
			if err := valid.NonNegative("load forecast", v); err != nil {
				return err
			}
		}
		if err := valid.Fraction("load level", l.Level); err != nil {
			return err
		}
	}
	if e.Fixed != nil {
		if err := e.Fixed.validate("fixed quota of " + e.Workload); err != nil {
			return err
		}
	}
	for _, p := range []*float64{e.Performance, e.Allocation, e.Backlog, e.Cost} {
		if p != nil && !valid.IsNonNegative(*p) {
			return valid.NonNegative("estimate of "+e.Workload, *p)
		}
	}
	if err := e.validateTotals(); err != nil {
		return err
	}
	for name, v := range e.Latency {
		if !valid.IsNonNegative(float64(v)) {
			return valid.NonNegative("latency "+name, float64(v))
		}
	}
	if err := e.validateShares(); err != nil {
		return err
	}
	if err := e.validateSeen(); err != nil {
		return err
	}
	if err := errors.Join(validInputs(e.Counters), e.validateMemory()); err != nil {
		return err
	}
	return validInputs(e.Inputs)
}

// validateTotals checks the numbers that are no pointers.
func (e *Estimate) validateTotals() error {
	// An estimate is checked several times a report: texts are put together
	// for an error alone.
	if !valid.IsNonNegative(e.Requests) {
		return valid.NonNegative("requests of "+e.Workload, e.Requests)
	}
	if !valid.IsNonNegative(float64(e.Starved)) {
		return valid.NonNegative("starvation of "+e.Workload, float64(e.Starved))
	}
	if !valid.IsNonNegative(float64(e.Window)) {
		return valid.NonNegative("window of "+e.Workload, float64(e.Window))
	}
	return nil
}

// validateSeen checks what spans showed of requests.
func (e *Estimate) validateSeen() error {
	if e.Observed != nil {
		if err := e.Observed.validate(e.Workload); err != nil {
			return err
		}
	}
	return validExemplars(e.Exemplars)
}

// validateShares checks that each instance is named once, and has some of the
// load.
func (e *Estimate) validateShares() error {
	if len(e.Shares) > MaxShares {
		return Invalidf("estimate of %s: %d shares of the load, limit %d", e.Workload, len(e.Shares), MaxShares)
	}
	sum := 0.0
	for i, s := range e.Shares {
		switch {
		case s.Host == "" || len(s.Host) > 253 || len(s.Instance) > 253:
			return Invalidf("estimate of %s: share of instance %.40q on host %.40q: want a host of 1 to 253 bytes, an instance of at most 253", e.Workload, s.Instance, s.Host)
		case !(s.Share > 0 && s.Share <= 1):
			return Invalidf("estimate of %s: share %v of %.253s/%.253s: want a number in (0, 1]", e.Workload, s.Share, s.Host, s.Instance)
		case i > 0 && e.Shares[i-1].Compare(s) >= 0:
			return Invalidf("estimate of %s: share of %.253s/%.253s given twice, or out of order", e.Workload, s.Host, s.Instance)
		}
		sum += s.Share
	}
	if !(sum <= 1+1e-9) {
		return Invalidf("estimate of %s: shares of the load add up to %v: want at most 1", e.Workload, sum)
	}
	return nil
}

// validateFurther checks the values of further resources.
func (e *Estimate) validateFurther() error {
	if len(e.Curves) > MaxResources || len(e.Allocations) > MaxResources {
		return Invalidf("estimate of %s: %d curves, %d allocations, limit %d", e.Workload, len(e.Curves), len(e.Allocations), MaxResources)
	}
	for name, c := range e.Curves {
		if err := valid.Named("resource of "+e.Workload, name); err != nil {
			return err
		}
		if c == nil {
			return Invalidf("estimate of %s: no curve over %.40q", e.Workload, name)
		}
		if err := c.Validate(); err != nil {
			return fmt.Errorf("over %s: %w", name, err)
		}
	}
	for name, v := range e.Allocations {
		if err := valid.Named("resource of "+e.Workload, name); err != nil {
			return err
		}
		if err := valid.NonNegative("allocation of "+name, v); err != nil {
			return err
		}
	}
	return nil
}

// validateMemory checks what instances need of memory: each is named once.
func (e *Estimate) validateMemory() error {
	if len(e.Memory) > quantity.MaxMemoryNeeds {
		return Invalidf("estimate of %s: memory of %d instances, limit %d", e.Workload, len(e.Memory), quantity.MaxMemoryNeeds)
	}
	for i := range e.Memory {
		n := &e.Memory[i]
		if len(n.Host) > 253 || len(n.Instance) > 253 || len(n.Unlearnt) > valid.MaxText || len(n.Why) > valid.MaxText {
			return Invalidf("estimate of %s: memory of instance %.40q on host %.40q: want names of at most 253 bytes", e.Workload, n.Instance, n.Host)
		}
		if i > 0 && e.Memory[i-1].Compare(n) >= 0 {
			return Invalidf("estimate of %s: memory of %.253s/%.253s given twice, or out of order", e.Workload, n.Host, n.Instance)
		}
		all := []float64{n.Use, n.Age, n.Need, n.Kills, n.Growth, n.Left}
		if n.Account != nil {
			all = append(all, n.Account.Numbers()...)
		}
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
