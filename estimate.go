package trimtab

import "time"

// Input is one thing that a decision looked at, with its age.
type Input struct {
	Name string `json:"name"`
	// Value is finite; it is 0 and means nothing when Missing is set.
	Value float64 `json:"value"`
	// Age is how old the value was at the time of the decision.
	Age Seconds `json:"age_s"`
	// Source says where it came from: "spans", "prometheus", "cgroup".
	Source string `json:"source,omitempty"`
	// Missing is empty, or the reason why there was no value.
	Missing string `json:"missing,omitempty"`
}

// LoadForecast is what is expected of the load in the coming round, in
// requests per second.
type LoadForecast struct {
	Now  float64 `json:"now"`
	Mean float64 `json:"mean"`
	// Upper bounds the highest load of the whole round at Level.
	Upper float64 `json:"upper"`
	Level float64 `json:"level"`
	// Model names the forecaster; "abstain" when it is no better than naive.
	Model string `json:"model"`
}

// Estimate is all that the planner knows of one workload.
type Estimate struct {
	Workload string    `json:"workload"`
	Time     time.Time `json:"time"`
	// Curve is nil while nothing was learnt.
	Curve *Curve `json:"curve,omitempty"`
	// Load is nil while no load was seen.
	Load *LoadForecast `json:"load,omitempty"`
	// Performance is the latest report, in the unit of the SLO; nil: none.
	Performance *float64 `json:"performance,omitempty"`
	// Latency holds the latest interval's latencies in seconds by name
	// ("p50", "p95", "p99"); absent ones were not measured.
	Latency map[string]Seconds `json:"latency_s,omitempty"`
	// Allocation is what the workload had in the latest report; nil: unknown.
	Allocation *float64 `json:"allocation,omitempty"`
	// Reports is how many observations the model holds.
	Reports int `json:"reports"`
	// Model names learner, version and confidence: "bintree/1".
	Model string `json:"model"`
	// Hold is empty, or the reason why this workload must not be lowered:
	// input is missing, stale or contradicts itself.
	Hold   string  `json:"hold,omitempty"`
	Inputs []Input `json:"inputs,omitempty"`
	// Exemplars are the slowest requests of the latest interval.
	Exemplars []Exemplar `json:"exemplars,omitempty"`
}

// Kind returns KindEstimate.
func (e *Estimate) Kind() Kind { return KindEstimate }

// Key returns the workload.
func (e *Estimate) Key() string { return e.Workload }

// Validate checks every number.
func (e *Estimate) Validate() error {
	if err := named("estimate of workload", e.Workload); err != nil {
		return err
	}
	if e.Time.IsZero() {
		return Invalidf("estimate of %s: no time", e.Workload)
	}
	if e.Curve != nil {
		if err := e.Curve.Validate(); err != nil {
			return err
		}
	}
	if l := e.Load; l != nil {
		for _, v := range []float64{l.Now, l.Mean, l.Upper} {
			if err := nonNegative("load forecast", v); err != nil {
				return err
			}
		}
		if err := fraction("load level", l.Level); err != nil {
			return err
		}
	}
	for _, p := range []*float64{e.Performance, e.Allocation} {
		if p != nil {
			if err := nonNegative("estimate of "+e.Workload, *p); err != nil {
				return err
			}
		}
	}
	for name, v := range e.Latency {
		if err := nonNegative("latency "+name, float64(v)); err != nil {
			return err
		}
	}
	if err := validExemplars(e.Exemplars); err != nil {
		return err
	}
	return validInputs(e.Inputs)
}

func validInputs(inputs []Input) error {
	for _, in := range inputs {
		if err := finite("input "+in.Name, in.Value); err != nil {
			return err
		}
		if err := finite("age of input "+in.Name, float64(in.Age)); err != nil {
			return err
		}
	}
	return nil
}
