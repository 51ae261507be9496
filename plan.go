package trimtab

import (
	"fmt"
	"time"

	"github.com/trimtab/trimtab/codes"
	"github.com/trimtab/trimtab/internal/valid"
)

// Mode is how far trimtab may go with one workload.
type Mode string

// The modes. The zero Mode is not valid; the default is Recommend.
const (
	// Off: watched and shown, never planned for.
	Off Mode = "off"
	// Recommend: everything but the write.
	Recommend Mode = "recommend"
	// Act: the write too.
	Act Mode = "act"
)

// Class is the kind of service a workload gives.
type Class string

// The classes.
const (
	LatencyCritical Class = "latency-critical"
	BestEffort      Class = "best-effort"
)

// Action sets one knob to one value. Epoch, sequence, step and
// lease are those of the plan that holds it.
type Action struct {
	KnobID
	// Expect is the value that must be found before the write; the actuator
	// refuses with ErrStale when it finds another one.
	Expect Amount `json:"expect"`
	// Set is the value to set; never a delta.
	Set Amount `json:"set"`
	// Envelope is the range in which the host may move the knob by itself until the next plan;
	// nil: it stays at Set. A host whose fast loop is off does not follow it.
	Envelope *Envelope `json:"envelope,omitempty"`
	// Capped: Set, a share by weight, is also a limit, so that others have the rest although they
	// cannot use it at every instant.
	Capped bool   `json:"capped,omitempty"`
	Mode   Mode   `json:"mode"`
	Why    Reason `json:"why"`
	// Leave names the instances that should leave first if the number of instances falls, the least
	// loaded first; none: any may.
	Leave []string `json:"leave,omitempty"`
	// Of is what the workload has and will have, if the knob is that of one of several instances;
	// nil: it is the only one.
	Of *Whole `json:"of,omitempty"`
}

// Whole is the effective allocation of a workload over all its instances: the
// least of amount by share of the load.
type Whole struct {
	Instances int     `json:"instances"`
	From      float64 `json:"from"`
	To        float64 `json:"to"`
}

// Reason is why: enough to check the decision by hand.
type Reason struct {
	// Summary is one sentence for a person, beside the name of the workload.
	Summary string  `json:"summary"`
	Inputs  []Input `json:"inputs,omitempty"`
	// Model is the learner that gave the curve.
	Model string `json:"model,omitempty"`
	// Bounds is the performance band at Set.
	Bounds *Band `json:"bounds,omitempty"`
	// Utility is expected at Set, in [0, 1], under the objective's bound.
	Utility *float64 `json:"utility,omitempty"`
	// Target is where the solver wants to be; Set is one bounded step to it.
	Target *float64 `json:"solver_target,omitempty"`
	// Demand is the least allocation that meets the SLO; nil: none does.
	Demand *float64 `json:"demand,omitempty"`
	// Binding is the constraint that stopped more.
	Binding      Binding       `json:"binding"`
	Alternatives []Alternative `json:"alternatives,omitempty"`
	// NextCheck is when this is looked at again.
	NextCheck time.Time `json:"next_check,omitzero"`
}

// Alternative is a rejected choice, with the objective it would have given.
type Alternative struct {
	Set       float64 `json:"set"`
	Objective float64 `json:"objective"`
	Why       string  `json:"why"`
}

// Plan is one step of one decision for one pool. A plan without actions renews the lease of the
// present values.
//
// A plan for several hosts is sent in pieces to parts that watch, and as a part to each host: see
// [Plan.Split].
type Plan struct {
	Pool string `json:"pool"`
	// Host is the host that this part of a plan is for, with only its actions; "": the plan is
	// for all.
	Host string `json:"host,omitempty"`
	// Piece counts the Pieces of a plan from 1; 0: this is none.
	Piece  int `json:"piece,omitempty"`
	Pieces int `json:"pieces,omitempty"`
	// Hosts are those that have knobs of the pool. They do not travel.
	Hosts []string `json:"-"`
	// Epoch is the leader's term, from 1; Sequence counts its plans, from 1; Step counts the
	// parts of a plan, from 1: shrinks come in step 1, grows in later steps, once outcomes
	// confirmed what was freed.
	Epoch    uint64 `json:"epoch"`
	Sequence uint64 `json:"sequence"`
	Step     int    `json:"step"`
	// Last: no step with actions follows. A step without actions may follow, to renew the lease.
	Last      bool      `json:"last"`
	Time      time.Time `json:"time"`
	Objective string    `json:"objective"`
	// Value is what the objective is expected to reach with the target.
	Value *float64 `json:"value,omitempty"`
	// Gap is by how much Value may be below the optimum, as a share of a proven bound on it: 0
	// when Value is the optimum. Nil with Value.
	Gap *float64 `json:"gap,omitempty"`
	// Capacity is what the pool shares, which is no more than its hosts have; the sum of what is
	// set never exceeds it. If several resources are pooled it is that of the first, and
	// Capacities has all of them by name: see CapacityOf.
	Capacity float64 `json:"capacity"`
	// Resource names the first one; "" in plans of builds that had only one.
	Resource   string             `json:"resource,omitempty"`
	Capacities map[string]float64 `json:"capacities,omitempty"`
	// Lendable says, for each host, by how much the sum of what is set there may exceed the sum
	// of targets, inside envelopes, in the unit of the first resource.
	Lendable map[string]float64 `json:"lendable,omitempty"`
	// Envelopes are of knobs that stay where they rest: no actions, since nothing moves.
	Envelopes []Enveloped `json:"envelopes,omitempty"`
	// Lease is how long the allocation is valid without another plan, BorrowLease how long what
	// knobs have above their baselines is, counted from Time; 0: as long as Lease. It is shorter
	// if other hosts lend that: their leases may end first.
	Lease       Seconds  `json:"lease_s"`
	BorrowLease Seconds  `json:"borrow_lease_s,omitempty"`
	Actions     []Action `json:"actions,omitempty"`
	// Held says, per workload that was held, why.
	Held map[string]Held `json:"held,omitempty"`
	// Unmoved says, for each workload that was planned for and keeps what it has, why: what it
	// needs, the guard's reason, what would move it.
	Unmoved map[string]Held `json:"unmoved,omitempty"`
	// Alarms are the alerts that fire on workloads, each of which is not lowered meanwhile.
	Alarms map[string]Alarm `json:"alarms,omitempty"`
	// Verdicts say what came of moves that were judged since the last plan.
	Verdicts []Verdict `json:"verdicts,omitempty"`
	// Cause is what started the round.
	Cause Cause `json:"cause"`
	// Applies names the recommended plan that a person asked to carry out; its actions may then
	// act on targets whose mode is recommend.
	Applies string `json:"applies,omitempty"`
	// Cut: a deadline cut the solution short.
	Cut bool `json:"cut,omitempty"`
	// Audit says how fair the allocation is; nil: nothing was audited.
	Audit *Audit `json:"audit,omitempty"`
}

// Alarm says that alerts fire on a workload.
type Alarm struct {
	// Name is that of the first, and More how many others fire.
	Name string `json:"name"`
	More int    `json:"more,omitempty"`
	// Since is when the first began, and Until when the last counts as over unless it is
	// repeated.
	Since time.Time `json:"since"`
	Until time.Time `json:"until"`
}

// Verdict is the judgement of one executed move.
type Verdict struct {
	Workload string `json:"workload"`
	// Plan is the ID of the plan that moved it.
	Plan    string          `json:"plan"`
	Verdict codes.Judgement `json:"verdict"`
	// Why says more where it is unknown.
	Why string `json:"why,omitempty"`
	// From and To are what it had before and after, in the resource's unit.
	From float64 `json:"from"`
	To   float64 `json:"to"`
	// Expected is the expected performance; Performance the reported one, over so many Requests,
	// nil: none.
	Expected    Band     `json:"expected"`
	Performance *float64 `json:"performance,omitempty"`
	Requests    float64  `json:"requests"`
}

// validate checks names and amounts.
func (v *Verdict) validate() error {
	if err := valid.Named("verdict on", v.Workload); err != nil {
		return err
	}
	if err := valid.Texts("verdict on "+v.Workload, v.Plan, string(v.Verdict), v.Why); err != nil {
		return err
	}
	for _, x := range []float64{v.From, v.To, v.Expected.Lower, v.Expected.Mean, v.Expected.Upper, v.Requests} {
		if err := valid.NonNegative("verdict on "+v.Workload, x); err != nil {
			return err
		}
	}
	if v.Performance != nil {
		return valid.NonNegative("verdict on "+v.Workload, *v.Performance)
	}
	return nil
}

// First reports whether a resource is the one that Capacity, and the curve and
// allocation of estimates, are of.
func (p *Plan) First(resource string) bool { return p.Resource == "" || p.Resource == resource }

// CapacityOf returns what the pool shares of a resource: 0 if it pools several and this is none
// of them.
func (p *Plan) CapacityOf(resource string) float64 {
	if len(p.Capacities) == 0 {
		return p.Capacity
	}
	return p.Capacities[resource]
}

// Kind returns KindPlan, or KindPart for a part for one host.
func (p *Plan) Kind() Kind {
	if p.Host != "" {
		return KindPart
	}
	return KindPlan
}

// Key returns the pool; for a part pool/host, so that no host reads the parts of others; for a
// piece "pool/", which no host reads.
func (p *Plan) Key() string {
	if p.Host == "" && p.Piece == 0 {
		return p.Pool
	}
	return p.Pool + "/" + p.Host
}

// ID prints "epoch-sequence", the name that apply and explain use.
func (p *Plan) ID() string { return PlanID(p.Epoch, p.Sequence) }

// PlanID prints "epoch-sequence".
func PlanID(epoch, sequence uint64) string { return fmt.Sprintf("%d-%d", epoch, sequence) }

// ParsePlanID reads what PlanID prints.
func ParsePlanID(s string) (epoch, sequence uint64, err error) {
	if n, err := fmt.Sscanf(s, "%d-%d", &epoch, &sequence); n != 2 || err != nil || PlanID(epoch, sequence) != s {
		return 0, 0, Invalidf("plan %.40q: want EPOCH-SEQUENCE, as in 3-17", s)
	}
	return epoch, sequence, nil
}

// Validate checks identity, lease and every action. No knob may occur twice.
func (p *Plan) Validate() error {
	checks := []func() error{p.validateIdentity, p.validateReasons, p.validateVerdicts, p.validateAmounts, p.validateAudit, p.validateActions}
	for _, check := range checks {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

// validateIdentity checks the names and numbers of the plan.
func (p *Plan) validateIdentity() error {
	if err := valid.Named("plan of pool", p.Pool); err != nil {
		return err
	}
	if p.Epoch == 0 || p.Sequence == 0 || p.Step < 1 {
		return Invalidf("plan of %s: epoch %d, sequence %d, step %d: all count from 1", p.Pool, p.Epoch, p.Sequence, p.Step)
	}
	if p.Time.IsZero() {
		return Invalidf("plan %s: no time", p.ID())
	}
	if p.Piece < 0 || p.Piece > p.Pieces || (p.Piece == 0) != (p.Pieces == 0) || p.Pieces > maxPieces {
		return Invalidf("plan %s: piece %d of %d, limit %d", p.ID(), p.Piece, p.Pieces, maxPieces)
	}
	if p.Piece > 0 && p.Host != "" {
		return Invalidf("plan %s: piece %d is not for one host", p.ID(), p.Piece)
	}
	if err := valid.Texts("plan "+p.ID(), p.Host, p.Objective, p.Resource, p.Applies); err != nil {
		return err
	}
	return p.Cause.validate("cause of plan " + p.ID())
}

// validateReasons checks why workloads were held or not moved, and which alerts fire.
func (p *Plan) validateReasons() error {
	id := p.ID()
	of := "workload of plan " + id
	for _, reasons := range []map[string]Held{p.Held, p.Unmoved} {
		for name, why := range reasons {
			if why.validate(id) != nil { // hardly ever, so that the text is made then
				return why.validate(fmt.Sprintf("plan %s on %.300s", id, name))
			}
			if err := valid.Named(of, name); err != nil {
				return err
			}
		}
	}
	for name, a := range p.Alarms {
		if err := valid.Named(of, name); err != nil {
			return err
		}
		if err := valid.Named("alert on "+name, a.Name); err != nil {
			return err
		}
	}
	return nil
}

// validateVerdicts checks the verdicts and bounds their number.
func (p *Plan) validateVerdicts() error {
	if len(p.Verdicts) > maxInputs {
		return Invalidf("plan %s: %d verdicts, limit %d", p.ID(), len(p.Verdicts), maxInputs)
	}
	for i := range p.Verdicts {
		if err := p.Verdicts[i].validate(); err != nil {
			return fmt.Errorf("plan %s: %w", p.ID(), err)
		}
	}
	return nil
}

// validateAmounts checks the lease and the capacities.
func (p *Plan) validateAmounts() error {
	if !(p.Lease > 0) {
		return Invalidf("plan %s: lease %v", p.ID(), p.Lease)
	}
	if p.BorrowLease > p.Lease {
		return Invalidf("plan %s: what is borrowed for %v is on a lease of %v", p.ID(), p.BorrowLease, p.Lease)
	}
	for _, v := range []float64{float64(p.Lease), float64(p.BorrowLease), p.Capacity} {
		if err := valid.NonNegative("plan "+p.ID(), v); err != nil {
			return err
		}
	}
	if len(p.Capacities) > MaxResources {
		return Invalidf("plan %s: capacities of %d resources, limit %d", p.ID(), len(p.Capacities), MaxResources)
	}
	for host, v := range p.Lendable {
		if err := valid.Named("host of plan "+p.ID(), host); err != nil {
			return err
		}
		if err := valid.NonNegative("lendable of "+host, v); err != nil {
			return err
		}
	}
	for name, v := range p.Capacities {
		if err := valid.Named("resource of plan "+p.ID(), name); err != nil {
			return err
		}
		if err := valid.NonNegative("capacity of "+name, v); err != nil {
			return err
		}
	}
	return nil
}

// validateAudit checks the audit, which may be missing.
func (p *Plan) validateAudit() error {
	if p.Audit == nil {
		return nil
	}
	if err := p.Audit.Validate(); err != nil {
		return fmt.Errorf("plan %s: %w", p.ID(), err)
	}
	return nil
}

// validateActions checks each action, that no knob occurs twice, and that a part for a host acts
// on no other.
func (p *Plan) validateActions() error {
	seen := make(map[KnobID]bool, len(p.Actions)+len(p.Envelopes))
	for i := range p.Envelopes {
		e := &p.Envelopes[i]
		if err := e.validate(p.Pool); err != nil {
			return fmt.Errorf("plan %s: %w", p.ID(), err)
		}
		if seen[e.KnobID] || p.Host != "" && e.Host != p.Host {
			return Invalidf("plan %s: two envelopes of %s, or that of another host", p.ID(), e.Name())
		}
		seen[e.KnobID] = true
	}
	for i := range p.Actions {
		a := &p.Actions[i]
		if err := a.validate(p.Pool); err != nil {
			return fmt.Errorf("plan %s: %w", p.ID(), err)
		}
		if seen[a.KnobID] {
			return Invalidf("plan %s: two actions on %s", p.ID(), a.Name())
		}
		seen[a.KnobID] = true
		if p.Host != "" && a.Host != p.Host {
			return Invalidf("plan %s: an action on host %.40q in the part of host %.40q", p.ID(), a.Host, p.Host)
		}
	}
	return nil
}

// maxLeave bounds the instances of an action that should leave first.
const maxLeave = 30

// validate checks names and amounts.
func (a *Action) validate(pool string) error {
	if err := a.KnobID.validate(pool, a.Host); err != nil {
		return err
	}
	if err := a.Expect.Validate(); err != nil {
		return fmt.Errorf("expect of %s: %w", a.Workload, err)
	}
	if err := a.Set.Validate(); err != nil {
		return fmt.Errorf("set of %s: %w", a.Workload, err)
	}
	if a.Envelope != nil {
		if err := a.Envelope.Validate(); err != nil {
			return fmt.Errorf("action on %.300s: %w", a.Workload, err)
		}
	}
	if a.Mode != Recommend && a.Mode != Act {
		return Invalidf("action on %s: mode %.20q", a.Workload, a.Mode)
	}
	if len(a.Leave) > maxLeave {
		return Invalidf("action on %s: %d instances that leave first, limit %d", a.Workload, len(a.Leave), maxLeave)
	}
	for _, name := range a.Leave {
		if err := valid.Named("instance of "+a.Workload, name); err != nil {
			return err
		}
	}
	return a.Why.validate("action on " + a.Workload + " at " + a.Host)
}

// validate bounds what a reason says.
func (r *Reason) validate(what string) error {
	if len(r.Alternatives) > maxInputs {
		return Invalidf("%.300s: %d alternatives, limit %d", what, len(r.Alternatives), maxInputs)
	}
	texts := []string{what, r.Summary, r.Model, string(r.Binding.Kind), r.Binding.Detail}
	for i := range r.Alternatives {
		texts = append(texts, r.Alternatives[i].Why)
	}
	if err := valid.Texts(what, texts...); err != nil {
		return err
	}
	return validInputs(r.Inputs)
}
