package signals

import (
	"cmp"
	"slices"
	"time"

	"github.com/trimtab/trimtab/analyzer/fingerprint"
	"github.com/trimtab/trimtab/speculation"
)

// ShownFor is how long a signal is reported after its last measurement.
const ShownFor = time.Minute

// MPKI is reported beside CPI: more cache misses alone are no anomaly.
const MPKI = "mpki"

// Shown lists the signals of the services, those with an anomaly first.
func (s *Set) Shown(now time.Duration) []speculation.ServiceSignal {
	var all []speculation.ServiceSignal
	for id, m := range s.models {
		of := m.Summary()
		if of.At == 0 || Time(now).Sub(time.Unix(0, of.At)) > ShownFor {
			continue
		}
		one := signalOf(id, &of.CPI, string(fingerprint.Gamma))
		one.Anomaly, one.FalseAlarms, one.Judged = of.Anomaly, of.FalseRate.Alarms, of.FalseRate.Judged
		all = append(all, one)
		if id.signal == CPI && of.MPKI.Windows > 0 {
			id.signal = MPKI
			all = append(all, signalOf(id, &of.MPKI, string(fingerprint.ChiSquare)))
		}
	}
	slices.SortFunc(all, func(a, b speculation.ServiceSignal) int {
		first := map[bool]int{true: 0, false: 1}
		return cmp.Or(cmp.Compare(first[a.Anomaly], first[b.Anomaly]), cmp.Compare(a.Workload, b.Workload),
			cmp.Compare(a.Instance, b.Instance), cmp.Compare(a.Signal, b.Signal))
	})
	return all[:min(len(all), speculation.MaxSignals)]
}

// signalOf converts one signal for people; family is the distribution with which the paper fits it.
func signalOf(id modelID, b *fingerprint.Brief, family string) speculation.ServiceSignal {
	out := speculation.ServiceSignal{Workload: id.workload, Instance: id.instance, Signal: id.signal, Value: float64(b.Value), Windows: b.Windows,
		Typical: float64(b.Typical), Boundary: float64(b.Boundary), Model: map[uint8]string{0: string(fingerprint.Unknown), 1: string(fingerprint.Phases), 2: family}[b.Judge]}
	if b.Shape > 0 {
		out.Distance = new(float64(b.KS))
	}
	return out
}
