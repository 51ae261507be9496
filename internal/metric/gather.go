package metric

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

var _ prometheus.Gatherer = (*Set)(nil)

// Before makes Gather call f first, to set values that are only needed when metrics are read.
func (s *Set) Before(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.before = append(s.before, f)
}

// Gather returns all metrics, including those of the registry, in order. A registry would check
// each series for what the table rules out: other types, other labels, the same series twice.
// With forty thousand series that is a third of the time.
func (s *Set) Gather() ([]*dto.MetricFamily, error) {
	s.mu.Lock()
	before := slices.Clone(s.before)
	s.mu.Unlock()
	for _, f := range before {
		f()
	}
	out, err := s.registry.Gather()
	for i, v := range s.vectors {
		f, bad := family(&s.rows[i], v)
		if bad != nil && err == nil {
			err = bad
		}
		if len(f.Metric) > 0 {
			out = append(out, f)
		}
	}
	slices.SortFunc(out, func(a, b *dto.MetricFamily) int { return cmp.Compare(a.GetName(), b.GetName()) })
	return out, err
}

// family reads all series of one row, in the order of their labels.
func family(r *Row, v prometheus.Collector) (*dto.MetricFamily, error) {
	out := &dto.MetricFamily{Name: &r.Name, Help: &r.Help, Type: typeOf(r.Type).Enum()}
	all := make(chan prometheus.Metric, 256)
	var reading sync.WaitGroup
	reading.Go(func() {
		defer close(all)
		v.Collect(all)
	})
	defer reading.Wait()
	// The value of the first label is kept beside each series, since sorting seldom needs more.
	type series struct {
		first string
		*dto.Metric
	}
	var found []series
	var failed error
	for m := range all {
		one := &dto.Metric{}
		if err := m.Write(one); err != nil {
			failed = fmt.Errorf("read metric %s: %w", r.Name, err)
			continue
		}
		next := series{Metric: one}
		if len(one.Label) > 0 {
			next.first = one.Label[0].GetValue()
		}
		found = append(found, next)
	}
	slices.SortFunc(found, func(a, b series) int {
		if c := strings.Compare(a.first, b.first); c != 0 {
			return c
		}
		// All have the same labels, in the same order.
		for i, p := range a.Label {
			if c := strings.Compare(*p.Value, *b.Label[i].Value); c != 0 {
				return c
			}
		}
		return 0
	})
	out.Metric = make([]*dto.Metric, len(found))
	for i := range found {
		out.Metric[i] = found[i].Metric
	}
	return out, failed
}

func typeOf(t Type) dto.MetricType {
	switch t {
	case Counter:
		return dto.MetricType_COUNTER
	case Gauge:
		return dto.MetricType_GAUGE
	}
	return dto.MetricType_HISTOGRAM
}
