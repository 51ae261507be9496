package trimtab

import (
	"strings"
	"time"

	"github.com/trimtab/trimtab/internal/valid"
)

// Status is the result of one action.
type Status string

// The statuses.
const (
	// Written: written and read back.
	Written Status = "written"
	// Pending: as Written, and not in force yet: Effective is.
	Pending Status = "pending"
	// Equal: the knob already stood there; nothing was written.
	Equal Status = "equal"
	// Recommended: all checks passed and the mode forbids the write.
	Recommended Status = "recommended"
	// Refused: a promise forbids it; Reason says which.
	Refused Status = "refused"
	// Failed: the write or the read back failed; Reason says how.
	Failed Status = "failed"
)

// Result is the result of one action.
type Result struct {
	KnobID
	Status Status `json:"status"`
	// Before was found, Asked was in the action, Found was read back.
	Before Amount `json:"before"`
	Asked  Amount `json:"asked"`
	Found  Amount `json:"found"`
	// Effective is what is in force while that is not Found; nil: Found is.
	Effective *Amount `json:"effective,omitempty"`
	// Known is false when the knob could not be read: Found means nothing.
	Known  bool   `json:"known"`
	Reason string `json:"reason,omitempty"`
}

// Outcome answers one step of a plan, from one host.
type Outcome struct {
	Pool     string    `json:"pool"`
	Host     string    `json:"host"`
	Epoch    uint64    `json:"epoch"`
	Sequence uint64    `json:"sequence"`
	Step     int       `json:"step"`
	Time     time.Time `json:"time"`
	Results  []Result  `json:"results,omitempty"`
	// Refused is empty, or why the whole plan was refused: an older epoch, a
	// repeated sequence, a lease that ended before it arrived.
	Refused string `json:"refused,omitempty"`
	// Took is the time from receipt to the last read back.
	Took Seconds `json:"took_s"`
}

// Overtaken begins the refusal of a plan by a host that has accepted another one of the same
// number or a later one.
const Overtaken = "stale: "

// Overtaken reports whether the host had accepted another plan of this number, or a later one.
func (o *Outcome) Overtaken() bool { return strings.HasPrefix(o.Refused, Overtaken) }

// Kind returns KindOutcome.
func (o *Outcome) Kind() Kind { return KindOutcome }

// Key returns pool/host, so that a bus can keep hosts from speaking for others.
func (o *Outcome) Key() string { return o.Pool + "/" + o.Host }

// Validate checks identity and amounts.
func (o *Outcome) Validate() error {
	if err := valid.Named("outcome of pool", o.Pool); err != nil {
		return err
	}
	if o.Time.IsZero() {
		return Invalidf("outcome of %s: no time", PlanID(o.Epoch, o.Sequence))
	}
	if err := valid.Texts("outcome of "+o.Pool, o.Host, o.Refused); err != nil {
		return err
	}
	for i := range o.Results {
		r := &o.Results[i]
		if err := r.validate(o.Pool, o.Host); err != nil {
			return err
		}
		if err := valid.Texts("result of "+r.Workload, string(r.Status), r.Reason); err != nil {
			return err
		}
		for _, a := range []Amount{r.Before, r.Asked, r.Found, inForce(r.Found, r.Effective)} {
			if err := a.Validate(); err != nil {
				return err
			}
		}
		if r.Status == Pending && (r.Effective == nil || !r.Known) {
			return Invalidf("result of %s: pending without what is in force", r.Workload)
		}
	}
	return valid.NonNegative("took_s", float64(o.Took))
}

// Holding is the state of all knobs that one pool has on one host, published at
// every change and at every heartbeat.
type Holding struct {
	// Pool is empty in what builds of version 1 wrote, which had one for all.
	Pool string `json:"pool,omitempty"`
	Host string `json:"host"`
	// Life identifies one run of the host's agent, so that two agents with one name are noticed;
	// 0: unknown.
	Life uint64    `json:"life,omitempty"`
	Time time.Time `json:"time"`
	// Epoch and Sequence are the highest that were accepted.
	Epoch    uint64 `json:"epoch"`
	Sequence uint64 `json:"sequence"`
	// LeaseLeft is how long the allocation still holds; 0: at baseline.
	LeaseLeft Seconds `json:"lease_left_s"`
	Paused    bool    `json:"paused,omitempty"`
	// Capacity is what the pool may give out of this host, by resource: what the host has, less
	// what is reserved. A missing resource was not measured, and the host does not bound it. If
	// other pools of the host claim some of it, it is what they leave, and never less than the
	// pool has.
	Capacity map[string]float64 `json:"capacity,omitempty"`
	// Divided: other pools claim some of the host, so Capacity bounds even a pool with no other host.
	Divided bool `json:"divided,omitempty"`
	// Pace is how many changes of its knobs a second the host makes, if they belong to a server
	// that accepts no more; 0: no bound.
	Pace float64 `json:"pace,omitempty"`
	// Unmet is what the configuration asks for and this host does not have in force.
	Unmet []Unmet `json:"unmet,omitempty"`
	// Targets are all knobs of the pool that this host has been given.
	Targets []KnobState `json:"targets,omitempty"`
}

// KnobState is the state of one knob.
type KnobState struct {
	KnobID
	// Knob names the kind and the place: "cgroup v2 shop.slice/checkout".
	Knob string `json:"knob"`
	// Unit is the systemd unit whose control group this is; "": it belongs to none, or no systemd
	// manages the groups there.
	Unit string `json:"unit,omitempty"`
	Now  Amount `json:"now"`
	// Effective is what is in force while that is not Now; nil: Now is.
	Effective *Amount `json:"effective,omitempty"`
	// Since is when Now and Effective were first seen.
	Since time.Time `json:"since"`
	// Baseline is what will be restored.
	Baseline Amount `json:"baseline"`
	// Min and Max are the declared bounds; Min is raised to what is in use, but not over Now, if
	// that must not be taken away.
	Min float64 `json:"min"`
	Max float64 `json:"max"`
	// Floor is what is in use, with a margin: no less may be set now. 0: not measured.
	Floor float64 `json:"floor,omitempty"`
	// Problem is empty, or why the knob cannot be used now; Now is then the
	// last value known.
	Problem string `json:"problem,omitempty"`
	// Shared: the amount is a share by weight of what a group above has: the least that the
	// target has whenever it wants it; it may also use what others leave idle.
	Shared bool `json:"shared,omitempty"`
	// Capped: a shared amount is a limit, too; see [Action].
	Capped bool `json:"capped,omitempty"`
	// Reserves: a shared amount is also a reservation on its node, in which nothing else is
	// placed, such as a request of Kubernetes. It cannot be a limit, stays as the site set it
	// while the needs fit, and is only changed by large steps.
	Reserves bool `json:"reserves,omitempty"`
	// Fast is what the host's fast loop does with it; nil: nothing.
	Fast *Fast `json:"fast,omitempty"`
	// ReadOnly is empty, or why a write would be refused: the mode does not write, or another
	// program sets the knob. It is read and planned for, as in mode recommend, and a plan for it
	// is not applied.
	ReadOnly string `json:"barred,omitempty"`
	// Status is that of its instance; nil: it is in no cluster, and nothing above bounds it.
	Status *KnobStatus `json:"standing,omitempty"`
}

// InForce returns the knob's effective value: Now, unless a write is pending, and no more than
// the groups above it allow.
func (k *KnobState) InForce() Amount { return k.Status.Cap(inForce(k.Now, k.Effective)) }

func inForce(set Amount, effective *Amount) Amount {
	if effective != nil {
		return *effective
	}
	return set
}

// Kind returns KindHolding.
func (h *Holding) Kind() Kind { return KindHolding }

// Key returns pool/host, so that several pools of one host do not replace each other's holdings.
// Without a pool it is the host.
func (h *Holding) Key() string {
	if h.Pool == "" {
		return h.Host
	}
	return h.Pool + "/" + h.Host
}

// Of reports whether the holding may be one of the named pool.
func (h *Holding) Of(pool string) bool { return h.Pool == "" || h.Pool == pool }

// Validate checks names and amounts.
func (h *Holding) Validate() error {
	if err := valid.Named("holding of host", h.Host); err != nil {
		return err
	}
	if err := valid.Texts("holding of "+h.Host, h.Pool); err != nil {
		return err
	}
	if h.Time.IsZero() {
		return Invalidf("holding of %s: no time", h.Host)
	}
	if len(h.Capacity) > MaxResources {
		return Invalidf("holding of %s: capacity of %d resources, limit %d", h.Host, len(h.Capacity), MaxResources)
	}
	for resource, v := range h.Capacity {
		if err := valid.Named("capacity of "+h.Host, resource); err != nil {
			return err
		}
		if err := Units(v).Validate(); err != nil {
			return err
		}
	}
	if len(h.Unmet) > MaxUnmet {
		return Invalidf("host %s: %d things that are not in force, limit %d", h.Host, len(h.Unmet), MaxUnmet)
	}
	for i := range h.Unmet {
		if err := h.Unmet[i].Validate(h.Host); err != nil {
			return err
		}
	}
	for i := range h.Targets {
		t := &h.Targets[i]
		if err := t.validate(h.Pool, h.Host); err != nil {
			return err
		}
		if err := valid.Texts("knob of "+t.Workload, t.Knob, t.Unit, t.Problem, t.ReadOnly); err != nil {
			return err
		}
		if err := t.Status.validate(t.Workload); err != nil {
			return err
		}
		if t.Fast != nil {
			if err := t.Fast.validate(t.Workload); err != nil {
				return err
			}
		}
		for _, a := range []Amount{t.Now, t.InForce(), t.Baseline, Units(t.Min), Units(t.Max), Units(t.Floor)} {
			if err := a.Validate(); err != nil {
				return err
			}
		}
	}
	if err := valid.NonNegative("pace", h.Pace); err != nil {
		return err
	}
	return valid.NonNegative("lease_left_s", float64(h.LeaseLeft))
}
