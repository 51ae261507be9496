package actuator_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/actuator"
	"github.com/trimtab/trimtab/internal/trial"
)

// memoryKnob is a knob in memory. It rounds to thousandths.
type memoryKnob struct {
	Name string `json:"name"`
	now  trimtab.Amount
	// wrote is called after each write, with what was there before.
	wrote func(before trimtab.Amount)
}

func (k *memoryKnob) String() string                 { return "memory " + k.Name }
func (k *memoryKnob) Resource() string               { return "cpu" }
func (k *memoryKnob) Probe(context.Context) error    { return nil }
func (k *memoryKnob) MayWrite(context.Context) error { return nil }
func (k *memoryKnob) Traits() actuator.Traits        { return actuator.Traits{} }
func (k *memoryKnob) Close() error                   { return nil }
func (k *memoryKnob) Undo() []byte                   { b, _ := json.Marshal(k); return b }

func (k *memoryKnob) Nearest(a trimtab.Amount) trimtab.Amount {
	if a.Unlimited {
		return a
	}
	return units(math.Round(a.Value*1000) / 1000)
}

func (k *memoryKnob) Read(context.Context) (trimtab.Amount, error) { return k.now, nil }

func (k *memoryKnob) Write(_ context.Context, a trimtab.Amount) error {
	before := k.now
	k.now = k.Nearest(a)
	k.wrote(before)
	return nil
}

// besieged is a host under forged plans, with a model of its bounds that is
// kept apart from the actuator's own.
type besieged struct {
	*host
	random *rand.Rand
	knobs  []*memoryKnob
	// had is what each knob had, and until when, newest last.
	had [][]had
	// lowered is when each knob was last lowered by a plan.
	lowered []time.Duration
	// genuine plans, to be replayed and altered.
	genuine []*trimtab.Plan
	// epoch and sequence are the true planner's.
	epoch, sequence uint64
	// asked is a plan that a person asked to apply.
	asked      string
	askedUntil time.Duration
	effects    int
}

type had struct {
	amount float64
	until  time.Duration
}

const (
	siegeCapacity = 8.0
	siegeLease    = 30 * time.Second
	siegeTargets  = 6 // the last but one recommends, the last is off
)

func besiege(t *testing.T, seed uint64) *besieged {
	b := &besieged{host: newHost(t), random: rand.New(rand.NewPCG(seed, 0)), epoch: 1}
	b.config.Limits = actuator.Limits{
		Capacity: map[string]float64{"cpu": siegeCapacity}, MaxLease: siegeLease, Fall: 0.5, Share: 0.5,
	}
	for i := range siegeTargets {
		k := &memoryKnob{Name: "w" + strconv.Itoa(i), now: units(1.5)}
		k.wrote = func(before trimtab.Amount) { b.check(i, before) }
		b.knobs = append(b.knobs, k)
		mode := trimtab.Act
		if i >= siegeTargets-2 {
			mode = []trimtab.Mode{trimtab.Recommend, trimtab.Off}[i-siegeTargets+2]
		}
		b.config.Targets = append(b.config.Targets, actuator.Target{KnobID: trimtab.KnobID{Workload: k.Name, Resource: "cpu"}, Knob: k, Min: 0.2, Max: 4, Mode: mode})
		b.had, b.lowered = append(b.had, nil), append(b.lowered, -time.Hour)
	}
	b.config.Reopen = func(undo []byte) (actuator.Knob, error) {
		var k memoryKnob
		if err := json.Unmarshal(undo, &k); err != nil {
			return nil, err
		}
		i, err := strconv.Atoi(k.Name[1:])
		return b.knobs[i], err
	}
	b.open()
	return b
}

// check is called after every single write of knob i, and looks at all bounds.
// Nothing is raised beyond the capacity; what is lowered when a person applies
// it counts from then on, and may make the sum of what counts larger.
func (b *besieged) check(i int, before trimtab.Amount) {
	sum := 0.0
	for j, k := range b.knobs {
		if j < siegeTargets-2 || j == siegeTargets-2 && !k.now.Equal(units(1.5), 1e-9) {
			sum += k.now.Value
		}
	}
	now := b.knobs[i].now
	if before.Less(now) && sum > siegeCapacity+0.002 || now.Unlimited || now.Value < 0.2 || now.Value > 4 {
		b.t.Errorf("w%d was set to %v, the sum is %v of %v", i, now, sum, siegeCapacity)
	}
	if i >= siegeTargets-2 && !now.Equal(units(1.5), 1e-9) && (i == siegeTargets-1 || b.asked == "" || b.boot >= b.askedUntil) {
		b.t.Errorf("w%d, which is not trimtab's to write, was set to %v", i, now)
	}
	b.effects++
}

// judge compares what the knobs have with what they had before a plan.
func (b *besieged) judge(before []trimtab.Amount, what string) {
	lowered := 0
	for i, k := range b.knobs {
		if !k.now.Equal(before[i], 1e-9) {
			b.had[i] = append(b.had[i], had{before[i].Value, b.boot})
		}
		most := k.now.Value
		for _, h := range b.had[i] {
			if h.until > b.boot-actuator.DefaultFallWindow {
				most = max(most, h.amount)
			}
		}
		if k.now.Less(before[i]) {
			b.lowered[i] = b.boot
			if k.now.Value < most/2-0.001 {
				b.t.Errorf("%s: w%d fell to %v, it had %v lately", what, i, k.now, most)
			}
		}
		if b.lowered[i] > b.boot-actuator.DefaultShareWindow {
			lowered++
		}
	}
	if lowered > siegeTargets/2 {
		b.t.Errorf("%s: %d of %d targets were lowered within %v", what, lowered, siegeTargets, actuator.DefaultShareWindow)
	}
	if left := b.Holding().LeaseLeft; left > trimtab.SecondsOf(siegeLease) {
		b.t.Errorf("%s: a lease of %v", what, left)
	}
}

// values returns what the knobs have.
func (b *besieged) values() (v []trimtab.Amount) {
	for _, k := range b.knobs {
		v = append(v, k.now)
	}
	return v
}

// amount draws one that is plausible, or odd.
func (b *besieged) amount(odd bool) trimtab.Amount {
	if odd {
		return pick(b.random, trimtab.Unlimited(), units(0), units(1e-300), units(1e9), units(math.MaxFloat64), units(-1), units(math.NaN()), units(math.Inf(1)))
	}
	return units(b.random.Float64() * 5)
}

func pick[T any](r *rand.Rand, all ...T) T { return all[r.IntN(len(all))] }

// forge makes a plan that no planner made, or one that it made long ago.
func (b *besieged) forge() *trimtab.Plan {
	r := b.random
	if len(b.genuine) > 0 && r.IntN(4) == 0 {
		p := *b.genuine[r.IntN(len(b.genuine))] // a replay, as it was or dated anew
		if r.IntN(2) == 0 {
			p.Time = b.wall
		}
		return &p
	}
	// Some are odd in nothing but what they set, some in nearly everything.
	part := pick(r, 0, 0.05, 0.5)
	odd := func() bool { return r.Float64() < part }
	at := b.Holding()
	p := b.plan(pick(r, at.Epoch, at.Epoch+1, at.Epoch+1+r.Uint64N(1000)), at.Sequence+1+r.Uint64N(3))
	if odd() {
		p.Epoch = pick(r, r.Uint64(), 1<<64-1, 1<<62, 1_000_000, 1+r.Uint64N(at.Epoch+1),
			uint64(b.wall.Sub(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)).Milliseconds()))
	}
	if odd() {
		p.Sequence = pick(r, at.Sequence, r.Uint64(), 1<<64-1, 1)
	}
	if odd() {
		p.Step = pick(r, 2, 1<<31, r.IntN(100))
	}
	p.Last = r.IntN(3) > 0
	p.Capacity = pick(r, siegeCapacity, 12.1, 1000)
	if odd() {
		p.Capacity = pick(r, math.MaxFloat64, 0, math.Inf(1))
	}
	p.Lease = trimtab.Seconds(pick(r, 30, 1e9, math.MaxFloat64))
	if odd() {
		p.Lease = trimtab.Seconds(pick(r, 0.001, 0, -1))
	}
	p.Applies = pick(r, "", b.asked)
	if odd() {
		p.Applies = pick(r, "1-1", "x")
	}
	if odd() {
		p.Pool = "other"
	}
	p.Time = pick(r, b.wall, b.wall.Add(-29*time.Second), b.wall.Add(29*time.Second))
	if odd() {
		p.Time = pick(r, b.wall.Add(-time.Hour), b.wall.Add(time.Hour), b.wall.AddDate(300, 0, 0), time.Time{})
	}
	for i := range b.knobs {
		if r.IntN(3) == 0 {
			continue
		}
		a := set(i, b.knobs[i].now, b.amount(odd()))
		if odd() {
			a.Expect = b.amount(true)
		}
		if odd() {
			a.Mode = pick(r, trimtab.Recommend, trimtab.Off, "")
		}
		if odd() {
			a.Host = "other"
		}
		p.Actions = append(p.Actions, a)
	}
	return p
}

// round is the true planner's next plan. As the pipeline does, it takes a
// higher epoch when the holding shows that another one was accepted.
func (b *besieged) round() {
	if at := b.Holding(); at.Epoch > b.epoch || at.Epoch == b.epoch && at.Sequence > b.sequence {
		b.epoch, b.sequence = at.Epoch+1, 0
	}
	b.sequence++
	p := b.plan(b.epoch, b.sequence)
	p.Capacity, p.Lease = siegeCapacity, trimtab.SecondsOf(siegeLease)
	for i, k := range b.knobs[:siegeTargets-2] {
		p.Actions = append(p.Actions, set(i, k.now, units(math.Round(k.now.Value*(800+b.random.Float64()*400))/1000)))
	}
	before := b.values()
	if o := b.Handle(b.t.Context(), p); o.Refused != "" {
		b.t.Errorf("the true planner's plan %s was refused: %s", p.ID(), o.Refused)
	}
	b.judge(before, "plan "+p.ID())
	if b.genuine = append(b.genuine, p); len(b.genuine) > 100 {
		b.genuine = b.genuine[1:]
	}
}

// R20, S2: forged and replayed plans come, with time, restarts and the true
// planner's rounds in between.
func TestNoForgedOrReplayedPlanGetsPastTheHostsOwnBounds(t *testing.T) {
	tr := trial.Start(t, trial.Some(1500, 5000))
	n, seed := tr.N, tr.Seed
	b := besiege(t, seed)
	accepted := 0
	for i := range n {
		p := b.forge()
		before := b.values()
		if b.Handle(t.Context(), p).Refused == "" {
			accepted++
		}
		b.judge(before, fmt.Sprintf("forged plan %d of seed %d", i, seed))
		if b.random.IntN(10) == 0 {
			b.pass(time.Millisecond) // the next plausible epoch
			b.round()
		}
		switch b.random.IntN(200) {
		case 0: // the lease ends: what comes back are the baselines, at once
			b.pass(siegeLease)
			b.settle()
		case 1:
			b.crash().open()
			b.settle()
			for i := range b.lowered {
				b.lowered[i] = -time.Hour // windows begin anew with the process
			}
		case 2: // a person asks for a plan to be applied, and one plan may
			b.asked = fmt.Sprintf("1-%d", i+1)
			b.host.askedAt(b.asked, b.wall)
			b.askedUntil = b.boot + siegeLease
		default:
			b.pass(time.Duration(b.random.IntN(300)) * time.Millisecond)
			b.Tick(t.Context())
			if b.unfinishedBack() {
				b.settle()
			}
		}
		tr.Case()
		if t.Failed() {
			return
		}
	}
	b.pass(time.Millisecond)
	b.round()
	b.pass(siegeLease)
	b.Tick(t.Context())
	for i, k := range b.knobs {
		if !k.now.Equal(units(1.5), 1e-9) {
			t.Errorf("w%d ends at %v, its baseline is 1.5", i, k.now)
		}
	}
	tr.Notef("%d forged and replayed plans: %d were accepted as plans, %d writes, none outside the host's own bounds", n, accepted, b.effects)
}

// unfinishedBack tells that something changed without a plan: what was taken
// for a plan that did not go on was given back, or a lease ran out.
func (b *besieged) unfinishedBack() bool { return b.Holding().LeaseLeft == 0 }

// settle makes the model start anew, after what no plan did.
func (b *besieged) settle() {
	b.Tick(b.t.Context())
	for i := range b.had {
		b.had[i] = nil
	}
}
