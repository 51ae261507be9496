package console

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/trimtab/trimtab"
)

// The size of a chart in the units of its viewBox, and its margins.
const (
	chartWidth, chartHeight    = 640.0, 240.0
	chartLeft, chartRight      = 48.0, 12.0
	chartTop, chartBottom      = 14.0, 26.0
	maxPoints, minLabelSpacing = 200, 44.0
)

// scale maps values to a side of a chart.
type scale struct{ low, high, from, to float64 }

func (s scale) at(v float64) float64 {
	if !(s.high > s.low) {
		return s.from
	}
	return s.from + (min(max(v, s.low), s.high)-s.low)/(s.high-s.low)*(s.to-s.from)
}

// tick is one labelled place on an axis.
type tick struct {
	At   string
	Text string
}

// mark is a line across a chart with a label.
type mark struct {
	tick
	// Anchor is where the label stands, so that it stays inside.
	Anchor string
}

// chart is what a template draws: numbers as SVG wants them.
type chart struct {
	Label         string
	Band, Line    string
	Wanted        string
	Across        []tick // the allocation or the time
	Up            []tick // the performance or the allocation
	Marks, Levels []mark
}

func coordinate(v float64) string { return fmt.Sprintf("%.1f", v) }

func points(xy [][2]float64) string {
	var b strings.Builder
	for i, p := range xy {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(coordinate(p[0]) + "," + coordinate(p[1]))
	}
	return b.String()
}

func across(low, high float64) scale { return scale{low, high, chartLeft, chartWidth - chartRight} }
func upward(high float64) scale      { return scale{0, high, chartHeight - chartBottom, chartTop} }

// curveChart draws the learnt performance over the allocation: the band, the
// mean, the SLO, and where the workload is and shall be. It is nil while
// nothing was learnt.
func curveChart(e *Explanation) *chart {
	if e.Curve == nil || len(e.Curve.Knots) == 0 {
		return nil
	}
	knots := e.Curve.Knots
	right, top := knots[len(knots)-1].Allocation, 0.0
	for _, k := range knots {
		top = max(top, k.Upper)
	}
	if e.SLOTarget != nil {
		top = max(top, *e.SLOTarget)
	}
	if e.Share {
		top = 1
	}
	if a := e.Allocation; a != nil && !a.Unlimited {
		right = max(right, a.Value)
	}
	if e.Target != nil {
		right = max(right, *e.Target)
	}
	x, y := across(0, right), upward(top*1.02)
	c := &chart{Label: "Learnt performance of " + e.Workload + " over its allocation, with bounds", Across: axis(x, Number),
		Up: axis(scale{0, top, y.at(0), y.at(top)}, func(v float64) string { return Performance(&v, e.Share) })}
	// Flat outside the knots, as Curve.Eval is.
	drawn := append([]trimtab.Knot{}, knots...)
	if drawn[0].Allocation > 0 {
		drawn = slices.Insert(drawn, 0, trimtab.Knot{Band: knots[0].Band})
	}
	if last := drawn[len(drawn)-1]; last.Allocation < right {
		drawn = append(drawn, trimtab.Knot{Allocation: right, Band: last.Band})
	}
	var line, upper, lower [][2]float64
	for _, k := range drawn {
		px := x.at(k.Allocation)
		line = append(line, [2]float64{px, y.at(k.Mean)})
		upper = append(upper, [2]float64{px, y.at(k.Upper)})
		lower = append(lower, [2]float64{px, y.at(k.Lower)})
	}
	slices.Reverse(lower)
	c.Line, c.Band = points(line), points(append(upper, lower...))
	if e.SLOTarget != nil {
		c.Levels = append(c.Levels, mark{tick{coordinate(y.at(*e.SLOTarget)), "SLO " + Performance(e.SLOTarget, e.Share)}, "start"})
	}
	if a := e.Allocation; a != nil && !a.Unlimited {
		c.Marks = append(c.Marks, x.mark(a.Value, "has "+Number(a.Value)))
	}
	return c
}

// mark labels a place on the horizontal axis.
func (s scale) mark(v float64, text string) mark {
	m := mark{tick{coordinate(s.at(v)), text}, "start"}
	if s.at(v) > chartWidth-120 {
		m.Anchor = "end"
	}
	return m
}

// axis labels at most five places at round distances.
func axis(s scale, text func(float64) string) []tick {
	span := s.high - s.low
	if !(span > 0) {
		return []tick{{coordinate(s.at(s.low)), text(s.low)}}
	}
	step := math.Pow(10, math.Floor(math.Log10(span)))
	for _, f := range []float64{0.1, 0.2, 0.25, 0.5, 1, 2} {
		if span/(step*f) <= 5 {
			step *= f
			break
		}
	}
	var out []tick
	for i := 0; i <= 5 && s.low+float64(i)*step <= s.high*(1+1e-9); i++ {
		v := s.low + float64(i)*step
		out = append(out, tick{coordinate(s.at(v)), text(v)})
	}
	return out
}

// historyChart draws what the workload had and what the solver wanted, from
// the decisions that are remembered. It is nil with fewer than two.
func historyChart(e *Explanation, decisions []*Decision, now time.Time) *chart {
	if n := len(decisions); n > maxPoints {
		decisions = decisions[n-maxPoints:]
	}
	if len(decisions) < 2 {
		return nil
	}
	first := decisions[0].Time
	top := 0.0
	for _, d := range decisions {
		top = max(top, d.Action.Expect.Value, d.Action.Set.Value)
		if t := d.Action.Why.Target; t != nil {
			top = max(top, *t)
		}
	}
	x, y := across(0, max(1, now.Sub(first).Seconds())), upward(max(top, 1e-9)*1.05)
	var had, wanted [][2]float64
	// Steps: a value holds until the next one.
	step := func(line [][2]float64, at, v float64) [][2]float64 {
		if n := len(line); n > 0 {
			line = append(line, [2]float64{at, line[n-1][1]})
		}
		return append(line, [2]float64{at, y.at(v)})
	}
	for _, d := range decisions {
		at := x.at(d.Time.Sub(first).Seconds())
		if !d.Action.Expect.Unlimited {
			had = step(had, at, d.Action.Expect.Value)
		}
		if t := d.Action.Why.Target; t != nil {
			wanted = step(wanted, at, *t)
		}
		if r := d.Result; r != nil && r.Status == trimtab.Written && r.Known && !r.Found.Unlimited {
			had = step(had, at, r.Found.Value)
		}
	}
	end := x.at(x.high)
	if a := e.Allocation; a != nil && !a.Unlimited {
		had = step(had, end, a.Value)
	}
	if n := len(wanted); n > 0 {
		wanted = append(wanted, [2]float64{end, wanted[n-1][1]})
	}
	return &chart{Label: "What " + e.Workload + " had, and what the solver wanted, over time", Line: points(had), Wanted: points(wanted),
		Across: []tick{{coordinate(x.from), Clock(first)}, {coordinate(x.to - minLabelSpacing), Clock(now)}},
		Up:     axis(scale{0, top, y.at(0), y.at(top)}, Number)}
}
