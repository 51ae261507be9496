package behavior

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// oracle remembers everything for ever but what a later change takes the place of, and reads
// each sentence of rules 1, 3 and 4 word by word.
type oracle struct {
	recommended []Recommendation
	changes     []change
}

type change struct {
	at       time.Time
	from, to int
}

// changed notes a change. It takes the place of the last one of its direction of those that
// are older than every period of that direction.
func (o *oracle) changed(now time.Time, b *Behavior, from, to int) {
	if b == nil || from == to {
		return
	}
	longest := 15
	if r := map[bool]*Rules{true: b.Up, false: b.Down}[to > from]; r != nil && r.Policies != nil {
		longest = 0
		for _, p := range r.Policies {
			longest = max(longest, p.PeriodSeconds)
		}
	}
	for i := len(o.changes) - 1; i >= 0; i-- {
		c := &o.changes[i]
		if (c.to > c.from) == (to > from) && now.Sub(c.at) > time.Duration(longest)*time.Second {
			*c = change{now, from, to}
			return
		}
	}
	o.changes = append(o.changes, change{now, from, to})
}

func (o *oracle) step(now time.Time, b *Behavior, in Bounds, current, wanted int) int {
	if len(o.recommended) == 0 {
		o.recommended = append(o.recommended, Recommendation{now, current})
	}
	if current == 0 && in.Min > 0 {
		return 0
	}
	if current < in.Min || current > in.Max {
		return min(max(current, in.Min), in.Max)
	}
	past := o.recommended
	o.recommended = append(o.recommended, Recommendation{now, wanted})
	if b == nil {
		hi := wanted
		for _, r := range past {
			if now.Sub(r.At) <= 300*time.Second {
				hi = max(hi, r.Replicas)
			}
		}
		return max(in.Min, min(hi, in.Max, max(2*current, 4)))
	}
	upWindow, downWindow := 0, 300
	if b.Up != nil && b.Up.Window != nil {
		upWindow = *b.Up.Window
	}
	if b.Down != nil && b.Down.Window != nil {
		downWindow = *b.Down.Window
	}
	lo, hi := wanted, wanted
	for _, r := range past {
		if now.Sub(r.At) < time.Duration(upWindow)*time.Second {
			lo = min(lo, r.Replicas)
		}
		if now.Sub(r.At) < time.Duration(downWindow)*time.Second {
			hi = max(hi, r.Replicas)
		}
	}
	result := current
	if result < lo {
		result = lo
	}
	if result > hi {
		result = hi
	}
	if result > current {
		return min(result, max(current, o.allowed(now, b.Up, current, +1)), in.Max)
	}
	if result < current {
		return max(result, min(current, o.allowed(now, b.Down, current, -1)), in.Min)
	}
	return result
}

// allowed is the number up or down to which the policies let it go.
func (o *oracle) allowed(now time.Time, r *Rules, current, sign int) int {
	policies := []Policy{{Percent, 100, 15}}
	if sign > 0 {
		policies = append(policies, Policy{Pods, 4, 15})
	}
	greatest := true
	if r != nil {
		if r.Select == Disabled {
			return current
		}
		if r.Policies != nil {
			policies = r.Policies
		}
		greatest = r.Select != Min
	}
	var reach []float64 // how far each policy lets it go
	for _, p := range policies {
		begin := float64(current)
		for _, c := range o.changes {
			if now.Sub(c.at) < time.Duration(p.PeriodSeconds)*time.Second {
				begin -= float64(c.to - c.from)
			}
		}
		to := begin + float64(sign*p.Value)
		if p.Type == Percent {
			to = begin * (1 + float64(sign)*float64(p.Value)/100)
			if sign > 0 {
				to = math.Ceil(to)
			} else {
				to = math.Trunc(to)
			}
		}
		reach = append(reach, float64(sign)*to)
	}
	best := reach[0]
	for _, v := range reach {
		if greatest {
			best = math.Max(best, v)
		} else {
			best = math.Min(best, v)
		}
	}
	return sign * int(best)
}

func drawRules(t *rapid.T, label string) *Rules {
	if rapid.IntRange(0, 4).Draw(t, label+" none") == 0 {
		return nil
	}
	r := &Rules{Select: rapid.SampledFrom([]string{"", Max, Min, Disabled, Max, Min}).Draw(t, label+" select")}
	if rapid.Bool().Draw(t, label+" window") {
		w := rapid.SampledFrom([]int{0, 1, 15, 30, 60, 300, 3600}).Draw(t, label+" seconds")
		r.Window = &w
	}
	for range rapid.IntRange(0, 3).Draw(t, label+" policies") {
		r.Policies = append(r.Policies, Policy{
			rapid.SampledFrom([]string{Pods, Percent}).Draw(t, label+" type"),
			rapid.SampledFrom([]int{1, 2, 4, 10, 50, 100, 250}).Draw(t, label+" value"),
			rapid.SampledFrom([]int{1, 15, 30, 60, 1800}).Draw(t, label+" period"),
		})
	}
	return r
}

func TestAnyBlockGivesTheNumbersOfItsSentences(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var b *Behavior
		if rapid.IntRange(0, 4).Draw(t, "block") > 0 {
			b = &Behavior{Up: drawRules(t, "up"), Down: drawRules(t, "down")}
			if err := b.Validate(); err != nil {
				t.Fatal(err)
			}
		}
		in := Bounds{Min: rapid.IntRange(0, 5).Draw(t, "min"), Max: rapid.IntRange(5, 60).Draw(t, "max")}
		current := rapid.IntRange(0, 70).Draw(t, "current")
		s, o, now := &State{}, &oracle{}, start()
		for range rapid.IntRange(1, 40).Draw(t, "looks") {
			wanted := rapid.IntRange(0, 80).Draw(t, "wanted")
			got, want := s.Step(now, b, in, current, wanted), o.step(now, b, in, current, wanted)
			if got.Replicas != want {
				t.Fatalf("from %d, %d wanted: %+v, want %d", current, wanted, got, want)
			}
			switch rapid.IntRange(0, 5).Draw(t, "then") {
			case 0: // the write failed
			case 1: // somebody else sets a number
				current = rapid.IntRange(0, 70).Draw(t, "other")
			default:
				s.Changed(now, b, current, want)
				o.changed(now, b, current, want)
				current = want
			}
			now = now.Add(time.Duration(rapid.SampledFrom([]int{1, 14, 15, 15, 15, 16, 45, 60, 300, 1800}).Draw(t, "pause")) * time.Second)
		}
	})
}
