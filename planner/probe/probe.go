package probe

import (
	"math"

	"github.com/trimtab/trimtab"
)

// Config is what trials may cost. Zero fields but Share take the default named
// with them.
type Config struct {
	// Share is the part of a workload's error budget that trials may use, in
	// [0, 1]; 0: no trials.
	Share float64
	// Misses is the part of all rounds that may miss the SLO, in (0, 1).
	// Default 0.05.
	Misses float64
	// Window is the number of rounds that are remembered. Default 100.
	Window float64
	// Calm is how many rounds must have met the SLO since the last miss.
	// Default 3.
	Calm int
}

func (c Config) withDefaults() Config {
	if c.Misses == 0 {
		c.Misses = 0.05
	}
	if c.Window == 0 {
		c.Window = 100
	}
	if c.Calm == 0 {
		c.Calm = 3
	}
	return c
}

// Account is what a workload has used of its error budget, in rounds. The zero
// Account has met nothing yet: it allows no trial before Calm rounds.
type Account struct {
	// Missed counts the rounds that missed the SLO, Tried what trials risked.
	Missed float64 `json:"missed"`
	Tried  float64 `json:"tried"`
	// Met is how many rounds met the SLO since the last miss.
	Met int `json:"met"`
	// From is what it had before it was raised on trial, in the resource's unit,
	// Rounds how many rounds ago that was; 0: it is on no such trial.
	From   float64 `json:"from,omitempty"`
	Rounds int     `json:"rounds,omitempty"`
}

// Valid reports whether the account is one that After and Charge can make.
func (a Account) Valid() bool {
	return a.Missed >= 0 && a.Tried >= 0 && a.Met >= 0 && !math.IsInf(a.Missed, 0) && !math.IsInf(a.Tried, 0) &&
		a.From >= 0 && !math.IsInf(a.From, 0) && a.Rounds >= 0
}

// After returns the account after one more round.
func (c Config) After(a Account, missed bool) Account {
	c = c.withDefaults()
	keep := 1 - 1/c.Window
	a.Missed *= keep
	a.Tried *= keep
	if missed {
		a.Missed, a.Met = a.Missed+1, 0
	} else if a.Met < math.MaxInt32 {
		a.Met++
	}
	if a.From > 0 && a.Rounds < math.MaxInt32 {
		a.Rounds++
	}
	return a
}

// Charge returns the account after a trial of that risk.
func (a Account) Charge(risk float64) Account {
	a.Tried += risk
	return a
}

// Left returns the part of what trials may use that is left, in [0, 1].
func (c Config) Left(a Account) float64 {
	c = c.withDefaults()
	budget := c.Misses * c.Window
	left := math.Min(c.Share*budget-a.Tried, budget-a.Missed)
	if c.Share == 0 || a.Met < c.Calm || left <= 0 {
		return 0
	}
	return math.Min(1, left/(c.Share*budget))
}

// Candidate is a workload that could be lowered on trial.
type Candidate struct {
	// Aim is what the policy wants it to have, To what it could be tried with,
	// in units; Band is the performance expected there.
	Aim, To int
	Band    trimtab.Band
	SLO     float64
	Account Account
}

// Risk returns the chance that the trial misses the SLO, in [0, 1], as if the
// performance were anywhere between its bounds.
func (x *Candidate) Risk() float64 {
	switch width := x.Band.Upper - x.Band.Lower; {
	case x.Band.Lower >= x.SLO:
		return 0
	case x.Band.Upper < x.SLO || !(width > 0):
		return 1
	default:
		return (x.SLO - x.Band.Lower) / width
	}
}

// Pays reports whether what is left of the error budget pays for a trial of that risk.
func (c Config) Pays(a Account, risk float64) bool {
	c = c.withDefaults()
	budget := c.Misses * c.Window
	return c.Share > 0 && a.Met >= c.Calm && a.Tried+risk <= c.Share*budget && a.Missed+risk <= budget
}

// Choose returns the candidate to try, and its risk; -1: none. Idle are the
// units that nobody is to have.
func (c Config) Choose(idle int, candidates []Candidate) (at int, risk float64) {
	best := 0.0
	at = -1
	for i := range candidates {
		x := &candidates[i]
		r := x.Risk()
		if x.To >= x.Aim || x.Aim-x.To > idle || !(r > 0 && r < 1) || !c.Pays(x.Account, r) {
			continue
		}
		if v := float64(x.Aim-x.To) * (1 - r); v > best {
			best, at, risk = v, i, r
		}
	}
	return at, risk
}
