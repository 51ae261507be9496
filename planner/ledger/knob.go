package ledger

import "github.com/trimtab/trimtab"

// Gone reports whether the host's last holding did not list the knob.
func (k *Knob) Gone() bool { return k.gone }

// Most is what an unlimited knob counts as: the least of what is declared and of
// what the host lets it have.
func (k *Knob) Most() float64 {
	most := k.most
	if k.Held.Max > 0 {
		most = min(most, k.Held.Max)
	}
	return k.Held.Standing.Cap(trimtab.Units(most)).Value
}

// Now is what the knob was last seen to be set to, Most where that is no limit or more than
// what is above it lets through.
func (k *Knob) Now() float64 { return k.bounded(k.Held.Now) }

// Baseline is what will be restored, Most where that is no limit.
func (k *Knob) Baseline() float64 { return k.bounded(k.Held.Baseline) }

// greatest is what a knob counts as that says it has more, so that all of them add
// up to a number: an exabyte, in the least of units.
const greatest = 1e18

func (k *Knob) bounded(a trimtab.Amount) float64 {
	if a.Unlimited {
		return k.Most()
	}
	return min(k.Held.Standing.Cap(a).Value, greatest)
}

// taken is what a knob takes of the pool when it is set to a.
func (k *Knob) taken(a trimtab.Amount) float64 {
	if a.Unlimited && k.Takes != nil {
		return min(*k.Takes, k.Most())
	}
	return k.bounded(a)
}

// gives is the most that the knob takes of the pool, or will when what is pending arrives.
func (k *Knob) gives() float64 { return max(k.taken(k.Held.Now), k.taken(k.Held.InForce())) }

// Lends returns what comes back to the knob with its baseline. One that had no
// limit before has lent nothing that could be counted.
func (k *Knob) Lends() float64 {
	if k.Held.Baseline.Unlimited {
		return 0
	}
	return max(0, min(k.Held.Baseline.Value, k.Most())-k.gives())
}
