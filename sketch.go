package trimtab

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/trimtab/trimtab/internal/valid"
	"github.com/trimtab/trimtab/quantile"
	"github.com/trimtab/trimtab/quantity"
)

// Sketch summarises the spans of one workload in one interval. Partial sketches of the same
// interval (one per partition) merge to the same sketch in any order.
type Sketch struct {
	Workload  string `json:"workload"`
	Partition int    `json:"partition"`
	// From and To bound the ends of the counted requests: From <= end < To.
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
	// Requests is the number of entry spans, adjusted for sampling: the spans of
	// requests that the workload served, each counted once (see analyzer/path).
	Requests float64 `json:"requests"`
	// Spans is the number of spans that were read for it, not adjusted.
	Spans uint64 `json:"spans"`
	// Sampled: some spans carried a sampling threshold, so that Requests is an estimate.
	Sampled bool `json:"sampled,omitempty"`
	// Adjusted is how many of Requests come from spans that tell how many they stand for.
	Adjusted float64 `json:"adjusted,omitempty"`
	// Latency holds the durations of the entry spans, in seconds.
	Latency quantile.Histogram `json:"latency"`
	// Threshold is the SLO latency that Under counts against; 0: none known.
	Threshold Seconds `json:"threshold_s,omitempty"`
	// Begun tells when the Requests began: Begun[k] of them k intervals of this length before the
	// one that they ended in, the last entry those before that too. At most MaxBegun entries;
	// empty: all began in it.
	Begun []float64 `json:"begun,omitempty"`
	// Unserved is how many of Requests have no SERVER or CONSUMER span: spans without a parent,
	// of components that were never seen to serve a request.
	Unserved float64 `json:"unserved,omitempty"`
	// Under is how many of Requests ended without error within Threshold.
	Under float64 `json:"under"`
	// Errors is how many of Requests ended with an error.
	Errors float64 `json:"errors,omitempty"`
	// Refused is how many of Requests a gate did not pass on to the workload, by class. They are
	// part of its demand and not in time, but cost it nothing, and took no time of it: they are
	// not in Latency. At most 64 classes.
	Refused map[string]float64 `json:"refused,omitempty"`
	// Late is how many further requests ended in earlier intervals, which were closed when their
	// spans came: no sketch counts them.
	Late float64 `json:"late,omitempty"`
	// Wait is how long after To it was made, once its senders had sent all spans of the interval.
	Wait Seconds `json:"wait_s,omitempty"`
	// Missing is the share, [0, 1], of recent spans that come from senders slower than the
	// longest wait: some of theirs are missing.
	Missing float64 `json:"missing,omitempty"`
	// Newer are the requests that ended in the intervals after this one, in order, as far as
	// their spans have come, for decisions that cannot wait. Spans sent twice count twice here;
	// later sketches count each once. At most MaxBegun; empty: none came, or Threshold is
	// unknown.
	Newer []Part `json:"newer,omitempty"`
	// Exemplars are the slowest requests over Threshold, or the slowest of all
	// when no threshold is known; the slowest first.
	Exemplars []Exemplar `json:"exemplars,omitempty"`
	// Components holds, per component, the sojourn time: the part of a span in which no child of
	// it ran, in seconds.
	Components map[string]*Component `json:"components,omitempty"`
	// Versions are the values of service.version that its components were seen
	// with lately, each as "component version", sorted; at most MaxVersions.
	Versions []string `json:"versions,omitempty"`
	// Instances says how many of Requests each instance served whose spans name it, in order of
	// host and names, at most MaxShares: the rest of Requests was served by unknown instances.
	Instances []InstanceLoad `json:"instances,omitempty"`
	// Servpods say, for a workload with an SLO, where the time of its requests went: in order of
	// component and host, at most MaxSketchServpods. Calls, at most MaxSketchCalls, say which of
	// it was waiting.
	Servpods []ServpodSketch `json:"servpods,omitempty"`
	Calls    []CallSketch    `json:"calls,omitempty"`
	// Flagged counts spans that were set aside or mended, by kind of fault.
	Flagged map[string]uint64 `json:"flagged,omitempty"`
}

// Part is how many requests of an incomplete interval have come, and how many of them ended
// without error within the latency of the SLO.
type Part struct {
	Requests float64 `json:"requests"`
	Under    float64 `json:"under"`
}

// validate checks that both are counts, with Under at most Requests.
func (p *Part) validate() error {
	if p == nil {
		return nil
	}
	if err := cmp.Or(valid.NonNegative("newer requests", p.Requests), valid.NonNegative("newer under", p.Under)); err != nil {
		return err
	}
	if p.Under > p.Requests*(1+1e-9) {
		return Invalidf("%v newer requests under the threshold, of %v", p.Under, p.Requests)
	}
	return nil
}

// MaxBegun bounds over how many intervals before and after its own a sketch counts.
const MaxBegun = 64

// maxRefused bounds the classes of refused requests.
const maxRefused = 64

// MaxVersions bounds the versions that a sketch names.
const MaxVersions = 16

// validateRefused checks refused requests by class.
func validateRefused(of string, byClass map[string]float64) error {
	if len(byClass) > maxRefused {
		return Invalidf("%s: refused requests of %d classes, limit %d", of, len(byClass), maxRefused)
	}
	for class, n := range byClass {
		if err := cmp.Or(valid.Named(of+": class of refused requests", class), valid.NonNegative("refused", n)); err != nil {
			return err
		}
	}
	return nil
}

// Component summarises the spans of one component.
type Component struct {
	Spans   float64            `json:"spans"`
	Sojourn quantile.Histogram `json:"sojourn"`
}

// InstanceLoad is how many requests one instance served, by the names in its spans, which may
// differ from the agent's name.
type InstanceLoad struct {
	// Host is where it ran: k8s.node.name or host.name; "": not told.
	Host string `json:"host,omitempty"`
	// Names are its names: those of service.instance.id, k8s.pod.name and container.id that
	// exist, without repetitions.
	Names []string `json:"names,omitempty"`
	// Requests is > 0, adjusted for sampling.
	Requests float64 `json:"requests"`
}

// maxNames bounds the names of one instance.
const maxNames = 8

// Compare orders loads by host and names.
func (l InstanceLoad) Compare(m InstanceLoad) int {
	return cmp.Or(cmp.Compare(l.Host, m.Host), slices.Compare(l.Names, m.Names))
}

// Kind returns KindSketch.
func (s *Sketch) Kind() Kind { return KindSketch }

// Key returns the workload.
func (s *Sketch) Key() string { return s.Workload }

// Validate checks the interval and the counts.
func (s *Sketch) Validate() error {
	if err := valid.Named("sketch of workload", s.Workload); err != nil {
		return err
	}
	if !s.From.Before(s.To) {
		return Invalidf("sketch of %s: interval from %v to %v", s.Workload, s.From, s.To)
	}
	for _, f := range [...]figure{{"requests", s.Requests}, {"under", s.Under}, {"errors", s.Errors}, {"adjusted", s.Adjusted}, {"unserved", s.Unserved},
		{"threshold_s", float64(s.Threshold)}, {"late", s.Late}, {"wait_s", float64(s.Wait)}, {"missing", s.Missing}} {
		if err := valid.NonNegative(f.name, f.v); err != nil {
			return err
		}
	}
	if s.Under > s.Requests*(1+1e-9) {
		return Invalidf("sketch of %s: %s under the threshold of %s requests", s.Workload,
			strconv.FormatFloat(s.Under, 'g', 6, 64), strconv.FormatFloat(s.Requests, 'g', 6, 64))
	}
	if err := validateRefused("sketch of "+s.Workload, s.Refused); err != nil {
		return err
	}
	if len(s.Begun) > MaxBegun || len(s.Newer) > MaxBegun {
		return Invalidf("sketch of %s: requests began in %d intervals and ended in %d newer ones, limit %d", s.Workload, len(s.Begun), len(s.Newer), MaxBegun)
	}
	for i := range s.Newer {
		if err := s.Newer[i].validate(); err != nil {
			return fmt.Errorf("sketch of %s: %w", s.Workload, err)
		}
	}
	for _, v := range s.Begun {
		if err := valid.NonNegative("begun", v); err != nil {
			return err
		}
	}
	if len(s.Versions) > MaxVersions {
		return Invalidf("sketch of %s: %d versions, limit %d", s.Workload, len(s.Versions), MaxVersions)
	}
	for name, c := range s.Components {
		if c == nil {
			return Invalidf("sketch of %s: component %q is null", s.Workload, name)
		}
	}
	if err := s.validateInstances(); err != nil {
		return err
	}
	if err := s.validateServpods(); err != nil {
		return err
	}
	return validExemplars(s.Exemplars)
}

// validateInstances checks that each instance is there once, and that they served
// no more than all did.
func (s *Sketch) validateInstances() error {
	if len(s.Instances) > MaxShares {
		return Invalidf("sketch of %s: %d instances, limit %d", s.Workload, len(s.Instances), MaxShares)
	}
	sum := 0.0
	for i, l := range s.Instances {
		switch {
		case len(l.Host) > 253 || len(l.Names) > maxNames || slices.ContainsFunc(l.Names, func(n string) bool { return len(n) > 253 }):
			return Invalidf("sketch of %s: instance %.40q on host %.40q: want at most %d names, of at most 253 bytes", s.Workload, l.Names, l.Host, maxNames)
		case !(l.Requests > 0 && valid.IsFinite(l.Requests)):
			return Invalidf("sketch of %s: %v requests of instance %q on host %.253s: want a number > 0", s.Workload, l.Requests, l.Names, l.Host)
		case i > 0 && s.Instances[i-1].Compare(l) >= 0:
			return Invalidf("sketch of %s: instance %q on host %.253s given twice, or out of order", s.Workload, l.Names, l.Host)
		}
		sum += l.Requests
	}
	if sum > s.Requests*(1+1e-9) {
		return Invalidf("sketch of %s: instances served %v of %v requests", s.Workload, sum, s.Requests)
	}
	return nil
}

// HostItself is the workload of samples of a whole host: all that runs there. No
// workload of a configuration can have that name.
const HostItself = ".host"

// Sample is one measured value of one workload, or says that there is none: then Missing says
// why, and Value is meaningless.
type Sample struct {
	Workload string `json:"workload"`
	// Host and Instance name one running copy of the workload that the sample is
	// of; both "": it is of all of them.
	Host     string            `json:"host,omitempty"`
	Instance string            `json:"instance,omitempty"`
	Quantity quantity.Quantity `json:"quantity"`
	// Source is the collector, "prometheus" or "cgroup", with detail after a
	// colon where several could answer.
	Source string `json:"source"`
	// Time is when the value was true; Window, how long before that it covers.
	Time   time.Time `json:"time"`
	Window Seconds   `json:"window_s,omitempty"`
	// Value is finite and >= 0.
	Value float64 `json:"value"`
	// Requests is how many requests a Performance fraction was taken over; 0: unknown.
	Requests float64 `json:"requests,omitempty"`
	// Sigma is the standard deviation of Value's noise; 0: unknown.
	Sigma float64 `json:"sigma,omitempty"`
	// Missing is empty, or the reason why there is no value.
	Missing string `json:"missing,omitempty"`
	// Note says for people what the value is of, where its number alone does not.
	Note string `json:"note,omitempty"`
}

// Kind returns KindSample.
func (s *Sample) Kind() Kind { return KindSample }

// Key returns the workload.
func (s *Sample) Key() string { return s.Workload }

// Get returns the value, and false when it is missing.
func (s *Sample) Get() (float64, bool) { return s.Value, s.Missing == "" }

// Validate checks names and numbers.
func (s *Sample) Validate() error {
	if err := valid.Named("sample of workload", s.Workload); err != nil {
		return err
	}
	if err := valid.Named("quantity", string(s.Quantity)); err != nil {
		return err
	}
	if err := valid.Texts("sample of "+s.Workload, s.Host, s.Instance, s.Note); err != nil {
		return err
	}
	if s.Workload == HostItself && s.Host == "" {
		return Invalidf("sample of a host without a name")
	}
	if s.Time.IsZero() {
		return Invalidf("sample of %s: no time", s.Workload)
	}
	if s.Missing != "" && s.Value != 0 {
		return Invalidf("sample of %s: missing with value %v", s.Workload, s.Value)
	}
	for _, f := range [...]figure{{"value", s.Value}, {"requests", s.Requests}, {"sigma", s.Sigma}, {"window_s", float64(s.Window)}} {
		if err := valid.NonNegative(f.name, f.v); err != nil {
			return err
		}
	}
	return nil
}
