package planner_test

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"pgregory.net/rapid"

	"github.com/trimtab/trimtab"
	planned "github.com/trimtab/trimtab/planner/whatif"
	"github.com/trimtab/trimtab/whatif"
)

// Whatever is measured of three workloads, and whatever their curves say, no two sentences that a
// plan says of one or of two of them contradict each other, nor what was measured, nor the numbers
// beside them. A case that fails is printed as a file of testdata/rounds.
func TestWhatAPlanSaysNeverContradictsItself(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		x := &spoken{script: map[string]bool{}}
		data := &datadriven.TestData{Cmd: "pool"}
		objective := rapid.SampledFrom([]string{"njc", "resource-fair", "egalitarian", "social"}).Draw(rt, "objective")
		data.CmdArgs = append(data.CmdArgs, datadriven.CmdArg{Key: "objective", Vals: []string{objective}})
		if rapid.IntRange(0, 3).Draw(rt, "shared") == 0 {
			data.CmdArgs = append(data.CmdArgs, datadriven.CmdArg{Key: "shared"})
		}
		left := 80
		for _, name := range []string{"a", "b", "c"} {
			has := rapid.IntRange(1, left/2).Draw(rt, name)
			left -= has
			data.Input += fmt.Sprintf("%s has=%g\n", name, float64(has)/10)
		}
		played := fmt.Sprintf("pool %v\n%s----\n", data.CmdArgs, data.Input)
		p := newPools(t, data)[0]
		p.heard = func(plan *trimtab.Plan) {
			for _, wrong := range x.contradictions(p, plan) {
				rt.Errorf("%s\n%s\nwhat a plan says:\n%s", wrong, played, said(plan))
			}
		}
		for range rapid.IntRange(1, 4).Draw(rt, "rounds") {
			if name := rapid.SampledFrom([]string{"", "", "a", "b"}).Draw(rt, "alert"); name != "" {
				d := &datadriven.TestData{Cmd: "alert", CmdArgs: []datadriven.CmdArg{{Key: name}}}
				if x.script[name] = !x.script[name]; !x.script[name] {
					d.CmdArgs = append(d.CmdArgs, datadriven.CmdArg{Key: "over"})
				}
				played += fmt.Sprintf("alert %v\n----\n", d.CmdArgs)
				p.do(t, d)
			}
			d := &datadriven.TestData{Cmd: "rounds", CmdArgs: []datadriven.CmdArg{{Key: "n", Vals: []string{strconv.Itoa(rapid.IntRange(1, 4).Draw(rt, "n"))}}}}
			for _, name := range []string{"a", "b", "c"} {
				d.Input += name + measured(rt) + "\n"
			}
			played += fmt.Sprintf("rounds %v\n%s----\n", d.CmdArgs, d.Input)
			p.do(t, d)
		}
	})
}

// measured is what may be known of a workload, as a line of a file.
func measured(rt *rapid.T) string {
	line := fmt.Sprintf(" needs=%g", float64(rapid.IntRange(1, 50).Draw(rt, "needs"))/10)
	line += fmt.Sprintf(" met=%g", rapid.SampledFrom([]float64{1, 1, 0.97, 0.9, 0.899, 0.87, 0.5, 0}).Draw(rt, "met"))
	for _, more := range []string{"backlog=3", "starved=10", "stopped=2", "late=9/30", "never", "rates", "unknown", "cost=0.001"} {
		if rapid.IntRange(0, 5).Draw(rt, more) == 0 {
			line += " " + more
		}
	}
	return line
}

// said is all that a plan says, a line for each workload.
func said(plan *trimtab.Plan) string {
	var b strings.Builder
	for _, a := range plan.Actions {
		fmt.Fprintf(&b, "%s: %s\n", a.Workload, a.Why.Summary)
	}
	for name, u := range plan.Unmoved {
		fmt.Fprintf(&b, "%s: %s\n", name, u.Text)
	}
	return b.String()
}

// spoken judges what plans say; script has the alerts that fire.
type spoken struct{ script map[string]bool }

var (
	itHas   = regexp.MustCompile(`it has ([0-9.]+) cores`)
	itNeeds = regexp.MustCompile(`(by its curve )?it needs (only )?([0-9.]+) cores`)
	itMoves = regexp.MustCompile(`(raised|lowered) from ([0-9.]+) to ([0-9.]+): \S+ wants ([0-9.]+), (where|and at ([0-9.]+)) performance is expected to be ([0-9.e-]+) \(`)
)

func numberIn(text string) float64 { v, _ := strconv.ParseFloat(text, 64); return v }

// contradictions are what no two sentences of a plan may say.
func (x *spoken) contradictions(p *scripted, plan *trimtab.Plan) (wrong []string) {
	lacks := func(name string) bool {
		e := p.known[name]
		return e != nil && (e.Performance != nil && *e.Performance < 0.9 || e.Starved > 0 && !p.shared)
	}
	for name, u := range plan.Unmoved {
		bad := func(format string, args ...any) { wrong = append(wrong, name+": "+fmt.Sprintf(format, args...)) }
		e, has, text := p.known[name], p.has[name].Value, u.Text
		if e == nil {
			continue
		}
		says := func(words ...string) bool {
			return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(text, w) })
		}
		late, starves := *e.Performance < 0.9, e.Starved > 0 && !p.shared
		early := e.Newer != nil && e.Newer.Under < 0.9*e.Newer.Requests
		if m := itHas.FindStringSubmatch(text); m == nil || math.Abs(numberIn(m[1])-has) > 0.051 {
			bad("it has %v", has)
		}
		if says("everybody has what it needs") && (says("misses", "no amount", "more is not", "waits") || slices.ContainsFunc([]string{"a", "b", "c"}, func(n string) bool { _, free := plan.Unmoved[n]; return free && lacks(n) })) {
			bad("somebody lacks something")
		}
		if m := itNeeds.FindStringSubmatch(text); m != nil {
			need := numberIn(m[3])
			switch plain := m[1] == ""; {
			case starves:
				bad("what waits is in no need")
			case plain && need > has+0.051 && !late && !early:
				bad("it meets its SLO with less than it is said to need")
			case plain && need <= has && (late || early):
				bad("it misses its SLO with more than it is said to need")
			case m[2] != "" && need > has+0.051:
				bad("it has less than that")
			}
		}
		switch {
		case says("misses its SLO") && !late && !early:
			bad("it meets its SLO")
		case late && says("everybody has", "meets its SLO now", "sure to meet"):
			bad("it misses its SLO")
		case says("no amount is expected", "more is not expected") && !late && !early:
			bad("it meets its SLO with what it has")
		case starves != says("uses all of it and waits"):
			bad("it starves: %v", starves)
		case x.script[name] && !starves && !says("keeps that while alert Slow fires"):
			bad("what keeps it is an alert")
		case says("which is what") && says(" wants "):
			bad("at its target or not")
		}
	}
	for _, a := range plan.Actions {
		if e := p.known[a.Workload]; e != nil && e.Starved > 0 && !p.shared && a.Why.Demand != nil {
			wrong = append(wrong, fmt.Sprintf("%s: it starves, and needs %v", a.Workload, *a.Why.Demand))
		}
		wrong = append(wrong, ofMove(&a)...)
	}
	return wrong
}

// ofMove are the contradictions in what is said of a move.
func ofMove(a *trimtab.Action) (wrong []string) {
	bad := func(format string, args ...any) {
		wrong = append(wrong, a.Workload+": "+fmt.Sprintf(format, args...))
	}
	m := itMoves.FindStringSubmatch(a.Why.Summary)
	if m == nil || a.Why.Bounds == nil || a.Why.Target == nil {
		return nil
	}
	from, to, wants, mean := numberIn(m[2]), numberIn(m[3]), numberIn(m[4]), numberIn(m[7])
	switch raised, b := m[1] == "raised", a.Why.Bounds; {
	case raised != (a.Set.Value > a.Expect.Value) || raised != (to > from):
		bad("from %v to %v", a.Expect, a.Set)
	case raised && wants < to-0.051, !raised && wants > to+0.051:
		bad("it wants %v and goes beyond that, or the other way", wants)
	case math.Abs(wants-*a.Why.Target) > 0.051:
		bad("the target is %v", *a.Why.Target)
	case (m[5] == "where") != (math.Abs(*a.Why.Target-a.Set.Value) < 1e-9) || m[6] != "" && m[6] != m[3]:
		bad("what is expected at %v is said of %v", to, wants)
	case math.Abs(mean-b.Mean) > 0.001 || !(b.Lower <= b.Mean && b.Mean <= b.Upper):
		bad("expected %+v", *b)
	}
	return wrong
}

// What a what-if says of a workload fits what was measured of it, and its words fit its numbers.
func TestWhatAWhatIfSaysNeverContradictsItself(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		needs := map[string]float64{}
		for _, name := range []string{"a", "b", "c"} {
			needs[name] = rapid.Float64Range(0.5, 8).Draw(t, name)
		}
		q := askedPool(rapid.SampledFrom(objectives()).Draw(t, "objective"), rapid.Float64Range(3, 9).Draw(t, "capacity"), needs)
		q.After.Capacity = rapid.Float64Range(1, 12).Draw(t, "other")
		for _, e := range q.Estimates {
			met := rapid.SampledFrom([]float64{1, 0.95, 0.89, 0.5, 0}).Draw(t, e.Workload+" met")
			e.Performance = &met
		}
		got, err := planned.Answer(q)
		if err != nil {
			t.Fatal(err)
		}
		for i, w := range got.Workloads {
			met := *q.Estimates[i].Performance
			for _, o := range []whatif.Outlook{w.Before, w.After} {
				if o.Meets != whatif.ProspectOf(o.Performance, o.SLO) {
					t.Errorf("%s: meets its SLO: %s, by %+v", w.Workload, o.Meets, *o.Performance)
				}
				if b := o.Performance; o.Allocation == w.Now && !(b.Lower <= met && met <= b.Upper) {
					t.Errorf("%s: expected %+v at the %v that it has, measured %v", w.Workload, *b, w.Now, met)
				}
			}
			if same := math.Abs(w.Moved()) <= 0.05; same != (w.Effect == whatif.Stays) || !same && (w.Moved() > 0) != (w.Effect == whatif.Gains) {
				t.Errorf("%s: %s, from %v to %v", w.Workload, w.Effect, w.Before.Allocation, w.After.Allocation)
			}
			if w.Before.Allocation == w.After.Allocation && *w.Before.Performance != *w.After.Performance {
				t.Errorf("%s: it stays, and %+v becomes %+v", w.Workload, *w.Before.Performance, *w.After.Performance)
			}
		}
	})
}
