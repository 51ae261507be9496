package trimtab

import (
	"cmp"
	"slices"

	"github.com/trimtab/trimtab/internal/valid"
)

// The bounds of Servpods in a sketch. Further ones are summed in the component "other", or left
// out as calls.
const (
	MaxSketchServpods = 192
	MaxSketchCalls    = 96
)

// maxTailSums bounds the latency classes of a [TailSum].
const maxTailSums = 64

// ServpodSketch is what the requests of one workload spent in one component on one host, which
// may belong to another workload that they called. Sums are over requests that came through it,
// adjusted for sampling, in seconds.
type ServpodSketch struct {
	Component string `json:"component"`
	// Host is k8s.node.name or host.name; "": not told.
	Host string `json:"host,omitempty"`
	// Peer: it sends no spans, and is named by the spans of its callers: a database, a broker, a
	// service outside.
	Peer bool `json:"peer,omitempty"`
	// N is the number of requests; x below is the time of one of them in it, with
	// the waiting of its callers for it, and y its whole latency.
	N             float64 `json:"n"`
	Sum           float64 `json:"sum"`
	Square        float64 `json:"square"`
	Latency       float64 `json:"latency"`
	LatencySquare float64 `json:"latency_square"`
	Cross         float64 `json:"cross"`
	// Wait is the part of Sum outside of its own spans: network, queues.
	Wait float64 `json:"wait,omitempty"`
	// Off is how many of N had it off their critical path, OffLatency their latency, and Slack by
	// how much longer it could have taken in them.
	Off        float64 `json:"off,omitempty"`
	OffLatency float64 `json:"off_latency,omitempty"`
	Slack      float64 `json:"slack,omitempty"`
	// Tail divides the time on the critical path by the latency of the request.
	Tail []TailSum `json:"tail,omitempty"`
}

// TailSum is [k, n, own, wait]: n requests with a latency in (2^((k-1)/2), 2^(k/2)] seconds spent
// own seconds on the critical path in a Servpod, and wait seconds waiting for it.
type TailSum [4]float64

// CallSketch is how long one component waited for another: the part of its spans of calls outside
// of the callee's, on the critical path.
type CallSketch struct {
	Caller    string `json:"caller"`
	Component string `json:"component"`
	// N is the number of calls, Own what they took in the callee itself.
	N    float64 `json:"n"`
	Own  float64 `json:"own"`
	Wait float64 `json:"wait"`
	// Tail divides Wait by the latency of the request: [k, n, 0, wait].
	Tail []TailSum `json:"tail,omitempty"`
}

// Compare orders by component and host.
func (s *ServpodSketch) Compare(t *ServpodSketch) int {
	return cmp.Or(cmp.Compare(s.Component, t.Component), cmp.Compare(s.Host, t.Host))
}

// Compare orders by caller and callee.
func (c *CallSketch) Compare(d *CallSketch) int {
	return cmp.Or(cmp.Compare(c.Caller, d.Caller), cmp.Compare(c.Component, d.Component))
}

// validateServpods checks bounds, order and numbers.
func (s *Sketch) validateServpods() error {
	if len(s.Servpods) > MaxSketchServpods || len(s.Calls) > MaxSketchCalls {
		return Invalidf("sketch of %s: %d Servpods and %d calls, limits %d and %d", s.Workload, len(s.Servpods), len(s.Calls), MaxSketchServpods, MaxSketchCalls)
	}
	for i := range s.Servpods {
		p := &s.Servpods[i]
		if err := valid.Component(s.Workload, p.Component, p.Host); err != nil {
			return err
		}
		if i > 0 && s.Servpods[i-1].Compare(p) >= 0 {
			return Invalidf("sketch of %s: %.253s on host %.253s given twice, or out of order", s.Workload, p.Component, p.Host)
		}
		if !(p.N > 0) || !allNonNegative(p.N, p.Sum, p.Square, p.Latency, p.LatencySquare, p.Cross, p.Wait, p.Off, p.OffLatency, p.Slack) {
			return Invalidf("sketch of %s: sums of %.253s on host %.253s: want finite numbers >= 0 of some requests", s.Workload, p.Component, p.Host)
		}
		if err := validTail(s.Workload, p.Tail); err != nil {
			return err
		}
	}
	for i := range s.Calls {
		c := &s.Calls[i]
		if c.Caller == "" || len(c.Caller) > 253 || c.Component == "" || len(c.Component) > 253 || i > 0 && s.Calls[i-1].Compare(c) >= 0 {
			return Invalidf("sketch of %s: call of %.40q by %.40q: want names of 1 to 253 bytes, each pair once and in order", s.Workload, c.Component, c.Caller)
		}
		if !(c.N > 0) || !allNonNegative(c.N, c.Own, c.Wait) {
			return Invalidf("sketch of %s: sums of calls of %.253s by %.253s: want finite numbers >= 0 of some calls", s.Workload, c.Component, c.Caller)
		}
		if err := validTail(s.Workload, c.Tail); err != nil {
			return err
		}
	}
	return nil
}

func validTail(workload string, tail []TailSum) error {
	if len(tail) > maxTailSums {
		return Invalidf("sketch of %s: %d classes of latency, limit %d", workload, len(tail), maxTailSums)
	}
	for i, t := range tail {
		inOrder := i == 0 || tail[i-1][0] < t[0]
		if k := t[0]; !(k >= -maxTailSums && k <= maxTailSums && k == float64(int(k)) && inOrder && allNonNegative(t[1:]...)) {
			return Invalidf("sketch of %s: class of latency %v: want whole numbers in order, and finite sums >= 0", workload, t)
		}
	}
	return nil
}

func allNonNegative(v ...float64) bool {
	return !slices.ContainsFunc(v, func(x float64) bool { return !valid.IsNonNegative(x) })
}
