package e2e

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/analyzer"
	"github.com/trimtab/trimtab/analyzer/forecast"
	"github.com/trimtab/trimtab/analyzer/forecast/auto"
	"github.com/trimtab/trimtab/analyzer/learn"
	"github.com/trimtab/trimtab/analyzer/learn/gp"
	"github.com/trimtab/trimtab/codec"
	"github.com/trimtab/trimtab/internal/trial"
	"github.com/trimtab/trimtab/planner"
	"github.com/trimtab/trimtab/planner/welfare"
)

// disordered are the workloads of the loop that messages are disordered in.
const disordered = 20

// carrier takes the messages of one step of the loop to their reader.
type carrier interface {
	carry(step string, messages []message) []trimtab.Value
}

type message struct {
	kind trimtab.Kind
	text []byte
}

// read decodes a message, or says that it cannot be read.
func (m *message) read() (trimtab.Value, bool) {
	v, _, err := codec.Decode(m.kind, m.text)
	return v, err == nil
}

// clean carries every message once, in its order.
type clean struct{ *testing.T }

func (c clean) carry(_ string, messages []message) (values []trimtab.Value) {
	for _, m := range messages {
		v, ok := m.read()
		if !ok {
			c.Fatalf("a %s of our own cannot be read: %s", m.kind, m.text)
		}
		values = append(values, v)
	}
	return values
}

// disorder carries every message, too, but a tenth of them twice and a tenth in
// another place; and beside them messages of earlier rounds, a twentieth, and
// such as were broken on the way, a hundredth.
type disorder struct {
	random *rand.Rand
	// earlier are the last messages of each step.
	earlier map[string][]message
	// sent are all messages, broken those that must not be readable, unread
	// those that were not.
	sent, broken, unread, late int
}

func (d *disorder) carry(step string, messages []message) (values []trimtab.Value) {
	var out []message
	for _, m := range messages {
		out = append(out, m)
		if d.random.IntN(10) == 0 {
			out = append(out, m)
		}
		if old := d.earlier[step]; len(old) > 0 && d.random.IntN(20) == 0 {
			out = append(out, old[d.random.IntN(len(old))])
			d.late++
		}
		if d.random.IntN(100) == 0 {
			out = append(out, message{m.kind, d.damage(m.text)})
			d.broken++
		}
	}
	for i := range out {
		if d.random.IntN(10) == 0 {
			j := d.random.IntN(len(out))
			out[i], out[j] = out[j], out[i]
		}
	}
	d.sent += len(out)
	for _, m := range out {
		if v, ok := m.read(); ok {
			values = append(values, v)
		} else {
			d.unread++
		}
	}
	old := slices.Concat(d.earlier[step], messages)
	d.earlier[step] = old[max(0, len(old)-50*disordered):]
	return values
}

// damage cuts a message off, or overwrites a byte of it with what is nowhere in
// JSON. Of a changed digit nobody can know: TCP has a checksum for that.
func (d *disorder) damage(text []byte) []byte {
	at := d.random.IntN(len(text))
	if d.random.IntN(2) == 0 {
		return text[:at]
	}
	out := bytes.Clone(text)
	out[at] = 0
	return out
}

// rounds is analyzer, planner and a host that keeps the action contract, with
// every message between them encoded, carried and decoded.
type rounds struct {
	*testing.T
	carrier
	analyzer *analyzer.Analyzer
	planner  *planner.Planner
	now      map[string]trimtab.Amount
	// position is that of the newest plan that the host accepted.
	epoch, sequence uint64
	step            int
}

func name(i int) string { return fmt.Sprintf("w%02d", i) }

func newRounds(t *testing.T, c carrier) *rounds {
	t.Helper()
	ac := analyzer.Config{Report: time.Second, Round: time.Second, Forecaster: func() forecast.Forecaster {
		f, err := auto.New("auto", auto.Config{Horizon: 1, Level: 0.9, Step: time.Second})
		if err != nil {
			panic(err)
		}
		return f
	}}
	pc := planner.Config{Pool: "p", Resource: "cpu", Capacity: 2 * disordered, Unit: 0.1, Round: time.Second, Lease: time.Minute,
		Confirm: 2 * time.Second, StaleAfter: 10 * time.Second, Policy: welfare.Egalitarian{}}
	r := &rounds{T: t, carrier: c, now: map[string]trimtab.Amount{}}
	for i := range disordered {
		ac.Workloads = append(ac.Workloads, analyzer.Workload{Name: name(i), SLO: analyzer.SLO{Latency: 100 * time.Millisecond, Fraction: 0.9},
			Target: 0.9, Resource: "cpu", Min: 0.1, Max: 8, Learner: func() learn.Learner {
				l, err := gp.New(0.9)
				if err != nil {
					panic(err)
				}
				return l
			}})
		pc.Workloads = append(pc.Workloads, planner.WorkloadConfig{Name: name(i), Mode: trimtab.Act, SLO: 0.9, Min: 0.1})
		r.now[name(i)] = trimtab.Units(1.5)
	}
	var err error
	if r.analyzer, err = analyzer.New(ac); err != nil {
		t.Fatal(err)
	}
	if r.planner, err = planner.New(pc); err != nil {
		t.Fatal(err)
	}
	r.planner.Step(time.Unix(1_700_000_000, 0), &trimtab.Leader{Pool: "p", Epoch: 1})
	return r
}

// encoded are values as they travel.
func (r *rounds) encoded(values ...trimtab.Value) (out []message) {
	r.Helper()
	for _, v := range values {
		text, err := codec.Encode(v, trimtab.Origin{Source: "s", Incarnation: 1, Sequence: 1})
		if err != nil {
			r.Fatal(err)
		}
		out = append(out, message{v.Kind(), text})
	}
	return out
}

func (r *rounds) holding(at time.Time) *trimtab.Holding {
	h := &trimtab.Holding{Host: "h", Time: at, Epoch: r.epoch, Sequence: r.sequence}
	for i := range disordered {
		h.Targets = append(h.Targets, trimtab.KnobState{KnobID: trimtab.KnobID{Pool: h.Pool, Host: h.Host, Workload: name(i), Resource: "cpu"}, Knob: "k", Now: r.now[name(i)], Baseline: trimtab.Units(1.5), Min: 0.1, Max: 8})
	}
	return h
}

// round plays the second that begins at from, with the given load of each
// workload, and returns the plans as they were published.
func (r *rounds) round(from time.Time, loads []float64) (plans []byte) {
	r.Helper()
	to := from.Add(time.Second)
	in := []trimtab.Value{r.holding(to)}
	for i, load := range loads {
		under := load * min(1, r.now[name(i)].Value/(load/25))
		s := &trimtab.Sketch{Workload: name(i), From: from, To: to, Requests: load, Spans: uint64(load), Under: under, Threshold: 0.1}
		s.Latency.Add(0.05, under)
		s.Latency.Add(0.2, load-under)
		in = append(in, s)
	}
	at := to.Add(600 * time.Millisecond)
	for _, v := range r.carry("analyzer", r.encoded(in...)) {
		if out := r.analyzer.Step(at, v); len(out) > 0 {
			r.Fatalf("%d values before the end of a round", len(out))
		}
	}
	at = at.Add(100 * time.Millisecond)
	in = append(r.analyzer.Step(at, nil), r.holding(at))
	at = at.Add(100 * time.Millisecond)
	var out []trimtab.Value
	for _, v := range r.carry("planner", r.encoded(in...)) {
		out = append(out, r.planner.Step(at, v)...)
	}
	for out = append(out, r.planner.Step(at, nil)...); len(out) > 0; {
		messages := r.encoded(out...)
		for _, m := range messages {
			plans = append(plans, m.text...)
		}
		var outcomes []trimtab.Value
		for _, v := range r.carry("host", messages) {
			if o := r.act(v.(*trimtab.Plan), at); o != nil {
				outcomes = append(outcomes, o)
			}
		}
		out = nil
		at = at.Add(10 * time.Millisecond)
		for _, v := range r.carry("outcomes", r.encoded(outcomes...)) {
			out = append(out, r.planner.Step(at, v)...)
		}
	}
	return plans
}

// act carries out a plan that is newer than the last one.
func (r *rounds) act(p *trimtab.Plan, at time.Time) *trimtab.Outcome {
	newer := p.Epoch > r.epoch || p.Epoch == r.epoch && (p.Sequence > r.sequence || p.Sequence == r.sequence && p.Step > r.step)
	if !newer {
		return nil // repeated: the same answer is on its way already
	}
	r.epoch, r.sequence, r.step = p.Epoch, p.Sequence, p.Step
	o := &trimtab.Outcome{Pool: p.Pool, Host: "h", Epoch: p.Epoch, Sequence: p.Sequence, Step: p.Step, Time: at}
	for _, a := range p.Actions {
		before := r.now[a.Workload]
		if a.Mode == trimtab.Act && before.Equal(a.Expect, 1e-9) {
			r.now[a.Workload] = a.Set
			o.Results = append(o.Results, trimtab.Result{KnobID: a.KnobID, Status: trimtab.Written, Before: before, Asked: a.Set, Found: a.Set, Known: true})
		}
	}
	return o
}

// R7: as many messages as the trial says, 10% of them doubled, 10% in another
// place of their round, 5% late and 1% corrupt, lead to the very decisions that
// they lead to without; and what is corrupt is counted.
func TestDisorderChangesNoByteOfAnyDecision(t *testing.T) {
	tr := trial.Start(t, trial.Some(2000, 5000))
	d := &disorder{random: tr.Rand, earlier: map[string][]message{}}
	want, got := newRounds(t, clean{t}), newRounds(t, d)
	loads := rand.New(rand.NewPCG(tr.Seed, 1))
	load := make([]float64, disordered)
	decisions := 0
	for second := 0; d.sent < tr.N; second++ {
		for i := range load {
			load[i] = max(5, min(100, load[i]+float64(loads.IntN(21)-10)))
		}
		from := time.Unix(1_700_000_000+int64(second), 0).UTC()
		clean, messages := want.round(from, load), d.sent
		if mixed := got.round(from, load); !bytes.Equal(clean, mixed) {
			at := 0
			for at < min(len(clean), len(mixed)) && clean[at] == mixed[at] {
				at++
			}
			tr.Failf("second %d: the plans differ after\n%s\nwant %.300s\ngot  %.300s", second, clean[max(0, at-300):at], clean[at:], mixed[at:])
			return
		}
		decisions += bytes.Count(clean, []byte(`"expect"`))
		for range d.sent - messages {
			tr.Case()
		}
	}
	if d.unread != d.broken {
		tr.Failf("%d messages were broken, %d could not be read", d.broken, d.unread)
	}
	if decisions == 0 || d.late == 0 || d.broken == 0 {
		t.Errorf("nothing was tried: %d decisions, %d late and %d broken messages", decisions, d.late, d.broken)
	}
	tr.Notef("%d decisions; of %d messages %d were late, %d broken and counted", decisions, d.sent, d.late, d.broken)
}
