package ledger

import "github.com/trimtab/trimtab"

// Gone reports whether the host's last holding did not list the knob.
func (k *Knob) Gone() bool { return k.gone }

// Most returns what an unlimited knob counts as: the least of what is declared and of what the
// host allows it.
func (k *Knob) Most() float64 {
	most := k.most
	if k.Held.Max > 0 {
		most = min(most, k.Held.Max)
	}
	return k.Held.Status.Cap(trimtab.Units(most)).Value
}

// Now returns what the knob was last read as; Most if that is no limit, or exceeds what the
// groups above it allow.
func (k *Knob) Now() float64 { return k.bounded(k.Held.Now) }

// Baseline returns what will be restored; Most if that is no limit.
func (k *Knob) Baseline() float64 { return k.bounded(k.Held.Baseline) }

// greatest is the most that one knob counts as, so that the sum of all stays finite: an exabyte,
// in the smallest unit.
const greatest = 1e18

func (k *Knob) bounded(a trimtab.Amount) float64 {
	if a.Unlimited {
		return k.Most()
	}
	return min(k.Held.Status.Cap(a).Value, greatest)
}

// taken returns what a knob takes of the pool when it is set to a.
func (k *Knob) taken(a trimtab.Amount) float64 {
	if a.Unlimited && k.Takes != nil {
		return min(*k.Takes, k.Most())
	}
	return k.bounded(a)
}

// gives returns the most that the knob takes of the pool, now or once what is pending is in
// force.
func (k *Knob) gives() float64 { return max(k.taken(k.Held.Now), k.taken(k.Held.InForce())) }

// Lends returns how much the knob gets back when its baseline is restored. A knob that had no limit
// before lends 0, since the amount is not known.
func (k *Knob) Lends() float64 {
	if k.Held.Baseline.Unlimited {
		return 0
	}
	return max(0, min(k.Held.Baseline.Value, k.Most())-k.gives())
}
