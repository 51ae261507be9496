package probe

import (
	"math"

	"github.com/trimtab/trimtab"
)

// Short is a workload that is expected to miss its SLO and could be raised on
// trial.
type Short struct {
	// Aim is what the policy wants it to have, To what it could be tried with,
	// in units; Here and There are the performance expected with each.
	Aim, To     int
	Here, There trimtab.Band
	SLO         float64
	Account     Account
}

// Risk returns the chance that the trial is in vain, in [0, 1]: that there is
// no more performance than here, as if it were anywhere between its bounds.
func (x *Short) Risk() float64 {
	width := x.There.Upper - x.There.Lower
	if !(x.There.Upper > x.Here.Mean) || !(width > 0) {
		return 1
	}
	return math.Min(math.Max((x.Here.Mean-x.There.Lower)/width, 0), 1)
}

// promise is the part of the SLO that the upper bound adds to what is known.
func (x *Short) promise() float64 {
	return (math.Min(x.There.Upper, x.SLO) - x.Here.Mean) / x.SLO
}

// Raise returns the candidate to raise, and the risk that is charged; -1: none.
// Idle are the units that nobody is to have; burning tells that the error
// budget of somebody else burns, see [Config.Burns].
func (c Config) Raise(idle int, burning bool, candidates []Short) (at int, risk float64) {
	c = c.withDefaults()
	at = -1
	if burning {
		return at, 0
	}
	best := 0.0
	for i := range candidates {
		x := &candidates[i]
		r := x.Risk()
		if x.To <= x.Aim || x.To-x.Aim > idle || !(x.Here.Mean < x.SLO) || !(r < 1) || x.Account.From > 0 ||
			x.Account.Tried+r > c.Share*c.Misses*c.Window {
			continue
		}
		if v := x.promise() * (1 - r); v > best {
			best, at, risk = v, i, r
		}
	}
	return at, risk
}

// Burns reports whether a workload has missed in the last Calm rounds, with
// some of its error budget left to save. Who has long used all of it does not
// burn any more.
func (c Config) Burns(a Account) bool {
	c = c.withDefaults()
	return a.Missed > 0 && a.Met < c.Calm && a.Missed <= c.Misses*c.Window
}

// Raised returns the account of a workload that is raised on trial, from what it
// had.
func (a Account) Raised(from float64) Account {
	a.From, a.Rounds = from, 0
	return a
}

// Over reports whether a trial upwards has had the rounds that it takes to see
// what came of it.
func (c Config) Over(a Account) bool { return a.From > 0 && a.Rounds > c.withDefaults().Calm }

// Ended returns the account after a trial upwards.
func (a Account) Ended() Account {
	a.From, a.Rounds = 0, 0
	return a
}
