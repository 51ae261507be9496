package declared

import (
	"encoding/csv"
	"errors"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/analyzer/learn"
)

const (
	// maxPoints bounds a profile.
	maxPoints = 10_000
	// greatest bounds its numbers.
	greatest = 1e15
)

// errColumns lists the columns of a profile's file; the last two may be left out.
var errColumns = errors.New("want the columns allocation_per_load, performance and, if known, lower, upper")

// Profile is a recorded curve over the allocation per unit of load; make one
// with [ReadProfile].
type Profile struct {
	// at ascends strictly; bands do not descend.
	at    []float64
	bands []trimtab.Band
}

// ReadProfile reads CSV with the header "allocation_per_load,performance" or
// "allocation_per_load,performance,lower,upper": the allocation for each request per second, in
// the pool's unit, ascending, the performance that it gave, and its bounds. A performance that
// falls with more is raised to the best before it. Errors are trimtab.ErrInvalid and begin with
// the line.
func ReadProfile(r io.Reader) (*Profile, error) {
	rows := csv.NewReader(r)
	rows.TrimLeadingSpace, rows.Comment = true, '#'
	head, err := rows.Read()
	if err != nil {
		return nil, trimtab.Invalidf("1: %w: %w", errColumns, err)
	}
	if h := strings.Join(head, ","); h != "allocation_per_load,performance" && h != "allocation_per_load,performance,lower,upper" {
		return nil, trimtab.Invalidf("1: %.80q: %w", h, errColumns)
	}
	p := &Profile{}
	for {
		row, err := rows.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, trimtab.Invalidf("%w", err)
		}
		line, _ := rows.FieldPos(0)
		if err := p.add(row); err != nil {
			return nil, trimtab.Invalidf("%d: %w", line, err)
		}
	}
	if len(p.at) == 0 {
		return nil, trimtab.Invalidf("2: no points")
	}
	return p, nil
}

// add adds one row.
func (p *Profile) add(row []string) error {
	v := make([]float64, len(row))
	for i, text := range row {
		x, err := strconv.ParseFloat(text, 64)
		if err != nil || !(x >= 0 && x <= greatest) {
			return trimtab.Invalidf("%.40q: want a number from 0 to %g", text, greatest)
		}
		v[i] = x
	}
	n := len(p.at)
	switch {
	case n == maxPoints:
		return trimtab.Invalidf("more than %d points", maxPoints)
	case !(v[0] > 0) || n > 0 && v[0] <= p.at[n-1]:
		return trimtab.Invalidf("allocation_per_load %v: want more than 0, and than the row before", v[0])
	}
	b := trimtab.Band{Lower: v[1], Mean: v[1], Upper: v[1]}
	if len(v) == 4 {
		b.Lower, b.Upper = v[2], v[3]
	}
	if b.Lower > b.Mean || b.Mean > b.Upper {
		return trimtab.Invalidf("performance %v is not between its bounds %v and %v", b.Mean, b.Lower, b.Upper)
	}
	if n > 0 {
		before := p.bands[n-1]
		b = trimtab.Band{Lower: math.Max(b.Lower, before.Lower), Mean: math.Max(b.Mean, before.Mean), Upper: math.Max(b.Upper, before.Upper)}
	}
	p.at, p.bands = append(p.at, v[0]), append(p.bands, b)
	return nil
}

// Predict returns the band at an allocation under a load > 0.
func (p *Profile) Predict(allocation, load float64) trimtab.Band {
	x := allocation / load
	i, _ := slices.BinarySearch(p.at, x)
	if i == len(p.at) {
		return p.bands[i-1]
	}
	low, from := 0.0, trimtab.Band{}
	if i > 0 {
		low, from = p.at[i-1], p.bands[i-1]
	}
	t, to := (x-low)/(p.at[i]-low), p.bands[i]
	return trimtab.Band{Lower: from.Lower + t*(to.Lower-from.Lower), Mean: from.Mean + t*(to.Mean-from.Mean), Upper: from.Upper + t*(to.Upper-from.Upper)}
}

// Curve returns the profile at a load (requests/s, > 0) for allocations from
// min to max (0 <= min < max), or nil when they are out of range.
func (p *Profile) Curve(load, min, max, level float64) *trimtab.Curve {
	return curveOf(p.at, load, span{min, max, level}, func(a float64) trimtab.Band { return p.Predict(a, load) })
}

// span is the range and level of a requested curve.
type span struct{ min, max, level float64 }

// curveOf reads band at the ends and at each x·scale between them.
func curveOf(x []float64, scale float64, s span, band func(a float64) trimtab.Band) *trimtab.Curve {
	if !(scale > 0) || math.IsInf(scale, 0) || !(s.min >= 0 && s.max > s.min) || math.IsInf(s.max, 0) || !(s.level > 0 && s.level < 1) {
		return nil
	}
	c := &trimtab.Curve{Load: scale, Level: s.level}
	add := func(a float64) { c.Knots = append(c.Knots, trimtab.Knot{Allocation: a, Band: band(a)}) }
	add(s.min)
	for _, v := range x {
		if a := v * scale; a > c.Knots[len(c.Knots)-1].Allocation && a < s.max {
			add(a)
		}
	}
	add(s.max)
	c.Knots = learn.Thin(c.Knots, trimtab.MaxKnots)
	return c
}
