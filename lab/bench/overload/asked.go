package main

import "fmt"

// What trimtab is asked to reach. At 0.8 times the capacity nearly nothing may be refused; where
// more comes than fits, enough is answered, refusals begin soon and end soon, and critical requests
// are answered. At aboutTwice times the capacity the goodput and p99 are also compared with sharing
// by weight.
const (
	askedGoodput   = 0.90 // of the capacity
	askedOfWeights = 1.45 // goodput over that of the row of weights
	askedP99       = 0.22 // p99 over that of the row of weights
	askedCritical  = 0.99
	askedFirst     = 300 // ms
	askedShed      = 0.001

	aboutTwice = 2.0
)

// demand is one asked figure of a row, beside what was measured.
type demand struct {
	what     string
	measured *float64 // nil: there is no such figure
	bound    float64
	atMost   bool
	digits   int
	beside   *row // the row from which the bound is, nil: the bound is fixed
}

func (d demand) met() bool {
	if d.atMost {
		return *d.measured <= d.bound
	}
	return *d.measured >= d.bound
}

func (d demand) String() string {
	sign, met := "≥", "met"
	if d.atMost {
		sign = "≤"
	}
	switch {
	case d.measured == nil:
		met = "no such figure"
	case !d.met():
		met = "NOT met"
	}
	return fmt.Sprintf("%s %s, asked %s %.*f: %s", d.what, number(d.measured, d.digits), sign, d.digits, d.bound, met)
}

// asked says for each row of trimtab, service and load which of the asked figures it has in this
// run. A figure that compares two rows is left out if one of them is missing.
func asked(all []*result) (out []string) {
	for _, r := range all {
		for _, name := range []string{rowManaged, rowGate} {
			x := r.row(name)
			if x == nil {
				continue
			}
			for _, d := range r.demands(x) {
				doubt := ""
				if x.doubtful() || d.beside != nil && d.beside.doubtful() {
					doubt = " (doubtful: see the warnings)"
				}
				out = append(out, fmt.Sprintf("%s at %.1fx, %s: %v%s", r.Service, r.Load, name, d, doubt))
			}
		}
	}
	if len(out) == 0 {
		return nil
	}
	return append([]string{"", "What is asked of trimtab, and whether this run has it:"}, out...)
}

// demands returns the asked figures of a row of trimtab at a load.
func (r *result) demands(x *row) (out []demand) {
	if h := r.row(rowHAProxy); h != nil {
		out = append(out, demand{"goodput (the best maxconn in hindsight)", &x.Goodput, h.Goodput, false, 3, h})
	}
	if r.Load <= 1 {
		return append(out, demand{"share refused", &x.Shed, askedShed, true, 4, nil})
	}
	if r.Load == aboutTwice {
		out = append(out, demand{"goodput", &x.Goodput, askedGoodput, false, 3, nil})
		if w := r.row(rowWeights); w != nil {
			out = append(out, demand{"goodput (1.45 times that of weights)", &x.Goodput, askedOfWeights * w.Goodput, false, 3, w})
			if w.P99 != nil {
				out = append(out, demand{"p99 in ms (0.22 times that of weights)", x.P99, askedP99 * *w.P99, true, 0, w})
			}
		}
	}
	late := float64(x.Late)
	return append(out, demand{"critical requests in time", x.Critical, askedCritical, false, 3, nil},
		demand{"ms to the first refusal", x.First, askedFirst, true, 0, nil},
		demand{"refused from 5 s after the step on", &late, 0, true, 0, nil})
}

// row returns the row of a name that has figures, or nil.
func (r *result) row(name string) *row {
	for k := range r.Rows {
		if x := &r.Rows[k]; x.Name == name && x.Missing == "" {
			return x
		}
	}
	return nil
}
