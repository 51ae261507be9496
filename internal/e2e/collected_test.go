package e2e

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/analyzer"
	"github.com/trimtab/trimtab/analyzer/path"
	"github.com/trimtab/trimtab/codec"
	"github.com/trimtab/trimtab/config"
	"github.com/trimtab/trimtab/internal/site"
	"github.com/trimtab/trimtab/quantity"
)

// collected is path and analyzer with their defaults beside a service of 20 requests a
// second of 25 ms of CPU, on one core, whose processes collect their spans.
type collected struct {
	testing.TB
	path     *path.Path
	analyzer *analyzer.Analyzer
	random   *rand.Rand
	// queues are the spans that each process has not sent yet.
	queues [][]trimtab.Span
	// said are the estimates.
	said []*trimtab.Estimate
}

const collectedConfig = `
pool: {cpu: 4}
round: 5s
workloads:
  - name: web
    slo: {latency: 200ms, fraction: 0.95}
    match: {spans: {service.name: web}}
    knob: {cgroup: shop/web, cpu: {min: 0.2, max: 4}}
`

func newCollected(tb testing.TB, replicas int) *collected {
	tb.Helper()
	cfg, err := config.Parse("trimtab.yaml", []byte(collectedConfig))
	if err != nil {
		tb.Fatal(err)
	}
	c := &collected{TB: tb, random: rand.New(rand.NewPCG(7, uint64(replicas))), queues: make([][]trimtab.Span, replicas)}
	if c.path, err = path.New(site.PathConfig(cfg, 0)); err != nil {
		tb.Fatal(err)
	}
	ac, err := site.AnalyzerConfig(cfg)
	if err != nil {
		tb.Fatal(err)
	}
	if c.analyzer, err = analyzer.New(ac); err != nil {
		tb.Fatal(err)
	}
	return c
}

// play goes through a time in steps of 10 ms. A process sends every so often, each at
// another phase.
func (c *collected) play(long, every time.Duration) {
	const step = 10 * time.Millisecond
	begin := time.Unix(1_800_000_000, 0)
	for t := step; t <= long; t += step {
		now := begin.Add(t)
		if t%(50*time.Millisecond) == 0 {
			c.serve(int(t/(50*time.Millisecond)), now.Add(-time.Duration(c.random.IntN(9_000_000))))
		}
		for i := range c.queues {
			if phase := every * time.Duration(i) / time.Duration(len(c.queues)); (t-phase.Round(step))%every == 0 {
				c.flush(now.Add(2*time.Millisecond), i)
			}
		}
		if t%time.Second == 0 {
			c.measure(now)
		}
		if t%(100*time.Millisecond) == 0 {
			c.learn(now.Add(3*time.Millisecond), c.path.Step(now.Add(3*time.Millisecond), nil))
			for _, v := range c.analyzer.Step(now.Add(4*time.Millisecond), nil) {
				if e, ok := v.(*trimtab.Estimate); ok {
					c.said = append(c.said, e)
				}
			}
		}
	}
}

// serve ends a request at a time.
func (c *collected) serve(n int, end time.Time) {
	s := trimtab.Span{Start: end.Add(-time.Duration(30_000_000 + c.random.IntN(20_000_000))).UnixNano(), End: end.UnixNano(), Kind: trimtab.SpanServer, Adjusted: 1}
	binary.BigEndian.PutUint64(s.TraceID[8:], uint64(n)+1)
	s.SpanID[7] = 1
	c.queues[n%len(c.queues)] = append(c.queues[n%len(c.queues)], s)
}

// flush sends what a process has.
func (c *collected) flush(now time.Time, process int) {
	var w codec.FrameWriter
	r, _ := w.AddResource([]trimtab.Attr{{Key: "service.name", Value: "web"}, {Key: "service.instance.id", Value: fmt.Sprint(process)}})
	for _, s := range c.queues[process] {
		s.Resource = r
		if !w.Add(&s) {
			c.Fatal("frame full")
		}
	}
	if len(c.queues[process]) > 0 {
		c.learn(now, c.path.Step(now, w.Frame(0)))
	}
	c.queues[process] = nil
}

// measure tells the use of CPU of the last second, and what the service has.
func (c *collected) measure(now time.Time) {
	use := 0.5 * (1 + 0.02*(2*c.random.Float64()-1))
	c.analyzer.Step(now, &trimtab.Sample{Workload: "web", Quantity: quantity.Usage, Source: "cgroup", Time: now, Window: 1, Value: use})
	c.analyzer.Step(now, &trimtab.Holding{Pool: "default", Host: "h", Time: now, Targets: []trimtab.KnobState{{
		KnobID: trimtab.KnobID{Pool: "default", Host: "h", Workload: "web", Resource: "cpu"}, Knob: "k", Now: trimtab.Units(1), Baseline: trimtab.Units(1), Min: 0.2, Max: 4}}})
}

func (c *collected) learn(now time.Time, sketches []trimtab.Value) {
	for _, v := range sketches {
		c.analyzer.Step(now, v)
	}
}

// need is the least of what is expected to meet the SLO.
func need(e *trimtab.Estimate) float64 {
	for a := 0.2; a < 4; a += 0.01 {
		if e.Curve.Eval(a).Mean >= 0.95 {
			return a
		}
	}
	return 4
}

// R29: what happened counts when it happened.
func TestALoadIsWhatItIsHoweverItsSpansAreCollected(t *testing.T) {
	for _, every := range []time.Duration{200 * time.Millisecond, time.Second, 2 * time.Second, 5 * time.Second, 10 * time.Second} {
		for _, replicas := range []int{1, 3} {
			t.Run(fmt.Sprintf("every %v from %d", every, replicas), func(t *testing.T) {
				c := newCollected(t, replicas)
				c.play(5*time.Minute, every)
				from := time.Unix(1_800_000_000, 0).Add(90 * time.Second)
				settled := from.Add(time.Minute) // of some bursts, where each has 10 s
				least, most, held, n := math.Inf(1), 0.0, 0, 0
				for _, e := range c.said {
					if e.Time.Before(from) {
						continue
					}
					if n++; e.Hold != nil {
						held++
					}
					if math.Abs(e.Load.Now-20) > 2 {
						t.Errorf("load %v", e.Load.Now)
					}
					if e.Load.Upper > 25 || e.Load.Upper < 19 {
						t.Errorf("bound %v of a load of %v", e.Load.Upper, e.Load.Now)
					}
					if e.Time.After(settled) {
						least, most = min(least, need(e)), max(most, need(e))
					}
				}
				if n < 20 || held > 0 {
					t.Errorf("%d estimates, %d held", n, held)
				}
				if most > 1.05*least {
					t.Errorf("it needs %.2f to %.2f cores at a constant load", least, most)
				}
			})
		}
	}
}
