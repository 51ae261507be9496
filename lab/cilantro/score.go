package cilantro

// Score is what one window, round or run is worth, on the true performance.
type Score struct {
	// Social is the mean utility, Egalitarian the least (equations 1 and 2).
	Social      float64 `json:"social"`
	Egalitarian float64 `json:"egalitarian"`
	// NJC is the least ratio of a utility to that of the entitlement, at most 1.
	NJC float64 `json:"njc"`
	// Useful is Σ min(a_j, d_j) as a share of the capacity (equation 8).
	Useful float64 `json:"useful"`
}

func (s *Score) add(t Score, weight float64) {
	s.Social += weight * t.Social
	s.Egalitarian += weight * t.Egalitarian
	s.NJC += weight * t.NJC
	s.Useful += weight * t.Useful
}

// mean returns the mean of scores; the zero Score for none.
func mean(scores []Score) (sum Score) {
	for _, s := range scores {
		sum.add(s, 1/float64(len(scores)))
	}
	return sum
}

// truth is what one job has in one window.
type truth struct {
	// absent jobs count nowhere.
	absent bool
	// allocation is what it was given, demand what it needs, in units.
	allocation, demand float64
	// utility is what it got, entitled what it would get with its entitlement.
	utility, entitled float64
	// performance and load are the true ones.
	performance, load float64
}

// score sums up one window.
func score(of []truth, capacity float64) (s Score) {
	s.Egalitarian, s.NJC = 1, 1
	n := 0
	for i := range of {
		t := &of[i]
		if t.absent {
			continue
		}
		n++
		s.Social += t.utility
		s.Egalitarian = min(s.Egalitarian, t.utility)
		if t.entitled > 0 {
			s.NJC = min(s.NJC, t.utility/t.entitled)
		}
		s.Useful += min(t.allocation, t.demand) / capacity
	}
	if n > 0 {
		s.Social /= float64(n)
	}
	return s
}
