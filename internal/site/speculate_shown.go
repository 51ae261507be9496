package site

import (
	"cmp"
	"slices"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/analyzer/fingerprint"
)

// signalShown is for how long a signal is told that is not measured any more.
const signalShown = time.Minute

// signalMPKI is told beside CPI: more misses alone are no anomaly.
const signalMPKI = "mpki"

// shown lists how the signals of the services stand, those with an anomaly first.
func (s *signals) shown(now time.Duration) []trimtab.ServiceSignal {
	var all []trimtab.ServiceSignal
	for id, m := range s.models {
		of := m.Summary()
		if of.At == 0 || tick(now).Sub(time.Unix(0, of.At)) > signalShown {
			continue
		}
		one := signalOf(id, &of.CPI, string(fingerprint.Gamma))
		one.Anomaly, one.FalseAlarms, one.Judged = of.Anomaly, of.FalseRate.Alarms, of.FalseRate.Judged
		all = append(all, one)
		if id.signal == signalCPI && of.MPKI.Windows > 0 {
			id.signal = signalMPKI
			all = append(all, signalOf(id, &of.MPKI, string(fingerprint.ChiSquare)))
		}
	}
	slices.SortFunc(all, func(a, b trimtab.ServiceSignal) int {
		first := map[bool]int{true: 0, false: 1}
		return cmp.Or(cmp.Compare(first[a.Anomaly], first[b.Anomaly]), cmp.Compare(a.Workload, b.Workload),
			cmp.Compare(a.Instance, b.Instance), cmp.Compare(a.Signal, b.Signal))
	})
	return all[:min(len(all), trimtab.MaxSignals)]
}

// signalOf is one indicator; family is the distribution that the paper fits it with.
func signalOf(id modelID, b *fingerprint.Brief, family string) trimtab.ServiceSignal {
	out := trimtab.ServiceSignal{Workload: id.workload, Instance: id.instance, Signal: id.signal, Value: float64(b.Value), Windows: b.Windows,
		Typical: float64(b.Typical), Boundary: float64(b.Boundary), Model: map[uint8]string{0: string(fingerprint.Unknown), 1: string(fingerprint.Phases), 2: family}[b.Judge]}
	if b.Shape > 0 {
		out.Distance = new(float64(b.KS))
	}
	return out
}

// showSignals makes metrics of signals, of the worst copy of each workload. Those that are
// not told any more are forgotten.
func (h *taskHost) showSignals(all []trimtab.ServiceSignal) {
	now := map[shownSignal]float64{}
	worst := func(name string, s *trimtab.ServiceSignal, v float64) {
		k := shownSignal{name, s.Workload, s.Signal}
		now[k] = max(v, now[k])
	}
	for i := range all {
		s := &all[i]
		if s.Boundary > 0 {
			worst("trimtab_speculate_signal_ratio", s, s.Value/s.Boundary)
		}
		if rate, known := s.FalseAlarmRate(); known {
			worst("trimtab_speculate_false_alarms_ratio", s, rate)
		}
		if s.Distance != nil {
			worst("trimtab_speculate_fit_distance", s, *s.Distance)
		}
	}
	for old := range h.shownSignals {
		if _, still := now[old]; !still {
			h.metrics.Forget(old.metric, h.host, old.workload, old.signal)
			delete(h.shownSignals, old)
		}
	}
	for k, v := range now {
		h.metrics.Gauge(k.metric, h.host, k.workload, k.signal).Set(v)
		h.shownSignals[k] = true
	}
}

// shownSignal is one series.
type shownSignal struct{ metric, workload, signal string }
