package learn

import (
	"math"
	"slices"

	"github.com/trimtab/trimtab"
)

// chord is a range of knots that is represented by one straight line.
type chord struct {
	from, to int
	// at is the knot furthest from the line, err its distance; −1: all are on it.
	at  int
	err float64
}

// Thin returns a copy of at most n >= 2 of the knots: first both ends, then one by one the knot
// whose lower bound, mean or upper bound is furthest from the line through the knots chosen so far
// (Douglas and Peucker, 1973). A staircase of n/2 steps is preserved exactly. It takes O(len(knots)
// n) time at worst.
func Thin(knots []trimtab.Knot, n int) []trimtab.Knot {
	if len(knots) <= n {
		return slices.Clone(knots)
	}
	var chordsRoom [trimtab.MaxKnots]chord
	var keepRoom [trimtab.MaxKnots]int
	chords := append(chordsRoom[:0], chordOf(knots, 0, len(knots)-1))
	keep := append(keepRoom[:0], 0, len(knots)-1)
	for len(keep) < n {
		worst := 0
		for i := range chords {
			if chords[i].err > chords[worst].err {
				worst = i
			}
		}
		c := chords[worst]
		if c.at < 0 {
			break
		}
		keep = append(keep, c.at)
		chords[worst] = chordOf(knots, c.from, c.at)
		chords = append(chords, chordOf(knots, c.at, c.to))
	}
	slices.Sort(keep)
	out := make([]trimtab.Knot, len(keep))
	for i, k := range keep {
		out[i] = knots[k]
	}
	return out
}

// chordOf returns the chord from knot i to knot j.
func chordOf(knots []trimtab.Knot, i, j int) chord {
	c := chord{from: i, to: j, at: -1}
	p, q := &knots[i], &knots[j]
	for m := i + 1; m < j; m++ {
		k := &knots[m]
		t := (k.Allocation - p.Allocation) / (q.Allocation - p.Allocation)
		// Three comparisons are faster than max, which also handles NaN and −0: most of the time to
		// make a curve is spent here.
		if e := math.Abs(p.Lower + t*(q.Lower-p.Lower) - k.Lower); e > c.err {
			c.err, c.at = e, m
		}
		if e := math.Abs(p.Mean + t*(q.Mean-p.Mean) - k.Mean); e > c.err {
			c.err, c.at = e, m
		}
		if e := math.Abs(p.Upper + t*(q.Upper-p.Upper) - k.Upper); e > c.err {
			c.err, c.at = e, m
		}
	}
	return c
}
