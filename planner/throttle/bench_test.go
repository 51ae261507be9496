package throttle

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// crowd is a host with 500 tasks and 50 LRAs, each with two new samples a tick.
func crowd(b *testing.B, anomalous int) (*Policy, *Observation, func()) {
	p, err := New(config())
	if err != nil {
		b.Fatal(err)
	}
	o := &Observation{Time: time.Unix(1e6, 0), Mode: RP, Capacity: []float64{512, 4096}, Cores: 512, Metrics: []float64{0.5}}
	for i := range 500 {
		o.Tasks = append(o.Tasks, Task{ID: fmt.Sprintf("task-%03d", i), Job: fmt.Sprint("job-", i%50), Class: Second, Holds: []float64{1, 4},
			Progress: float64(i%97) / 97, Activity: 1})
	}
	for i := range 50 {
		o.LRAs = append(o.LRAs, LRA{Workload: fmt.Sprint("lra-", i), Cores: 2, Samples: make([]Sample, 2)})
	}
	return p, o, func() {
		o.Time = o.Time.Add(time.Second)
		for i := range o.Tasks {
			o.Tasks[i].Activity = float64(i*int(o.Time.Unix())%101) / 101
			o.Tasks[i].Expires = o.Time.Add(time.Minute)
		}
		for i := range o.LRAs {
			for k := range 2 {
				value := 1.0
				if i < anomalous {
					value = 1.5 + 0.1*float64(o.Time.Unix()%3)
				}
				o.LRAs[i].Samples[k] = Sample{Signal: "cpi", Time: o.Time.Add(time.Duration(k-1) * 500 * time.Millisecond), Length: 500 * time.Millisecond,
					Value: value, Boundary: 1.15, Anomaly: value > 1.15}
			}
		}
	}
}

// BenchmarkDecide500Tasks50LRAs: a tick while all is calm, with a full queue; and one in
// which suspects are ranked and a trial begins, with half of the LRAs anomalous.
func BenchmarkDecide500Tasks50LRAs(b *testing.B) {
	for _, c := range []struct {
		name      string
		anomalous int
	}{{"calm", 0}, {"a trial begins", 25}} {
		b.Run(c.name, func(b *testing.B) {
			p, o, next := crowd(b, c.anomalous)
			var took []time.Duration
			for b.Loop() {
				b.StopTimer()
				if c.anomalous > 0 && p.trial.number >= 20 { // before it finds that nobody is guilty
					p, _ = New(config())
				}
				for begun := false; !begun; {
					next()
					for n := range 100 {
						p.Offer(o.Time, Request{ID: fmt.Sprint("queued-", n), Wants: []float64{1e4, 1}, Expires: o.Time.Add(time.Minute)})
					}
					before := p.trial.number
					b.StartTimer()
					start := time.Now()
					p.Decide(o)
					spent := time.Since(start)
					b.StopTimer()
					if begun = c.anomalous == 0 || p.trial.number > before; begun {
						took = append(took, spent)
					}
				}
				b.StartTimer()
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Microseconds()), "median-µs")
			b.ReportMetric(float64(took[len(took)*9/10].Microseconds()), "p90-µs")
			b.ReportMetric(0, "ns/op") // of several ticks
		})
	}
}
