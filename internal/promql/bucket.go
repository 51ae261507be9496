package promql

import (
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
)

// Bucket is the one bucket of a histogram that a selector names.
type Bucket struct {
	// Le is its upper bound in the histogram's own unit, Latency as a time; 0: the
	// metric measures something else.
	Le      float64
	Latency time.Duration
	// Named says that the metric's name contains the unit; otherwise seconds are assumed, as
	// Prometheus recommends.
	Named bool
}

// BucketOf reads the label le of a selector; ok is false if it has none, that of all requests, or
// several. It reads le="0.25", le="1.0" and expressions for both spellings of a whole number, as
// Pyrra writes them: le=~"1(\.0)?".
func BucketOf(s *parser.VectorSelector) (b Bucket, ok bool) {
	for _, m := range s.LabelMatchers {
		if m.Name != model.BucketLabel {
			continue
		}
		le, is := 0.0, false
		switch m.Type {
		case labels.MatchEqual:
			v, err := strconv.ParseFloat(m.Value, 64)
			le, is = v, err == nil
		case labels.MatchRegexp:
			le, is = oneNumber(m.Value)
		}
		if !is || ok && le != b.Le {
			return Bucket{}, false
		}
		b.Le, ok = le, true
	}
	if !ok || !(b.Le > 0 && b.Le <= math.MaxFloat64) {
		return Bucket{}, false
	}
	var unit time.Duration
	if unit, b.Named = UnitOf(Name(s)); unit > 0 && b.Le*float64(unit) < float64(math.MaxInt64) {
		b.Latency = time.Duration(math.Round(b.Le * float64(unit)))
	}
	return b, true
}

// Name is the metric of a selector, "" where it names none.
func Name(s *parser.VectorSelector) string {
	if s.Name != "" {
		return s.Name
	}
	for _, m := range s.LabelMatchers {
		if m.Name == model.MetricNameLabel && m.Type == labels.MatchEqual {
			return m.Value
		}
	}
	return ""
}

// oneNumber reads a regular expression that matches one number, in one or several spellings:
// 1(\.0)?, 1\.0|1, (0.5|0\.50).
func oneNumber(text string) (v float64, ok bool) {
	text = regexp.MustCompile(`\((\?:)?\\?\.0[*+]?\)[?*]`).ReplaceAllString(text, "")
	text = strings.TrimSuffix(strings.TrimPrefix(text, "^"), "$")
	if inner, cut := strings.CutPrefix(text, "("); cut && strings.HasSuffix(inner, ")") {
		text = strings.TrimPrefix(strings.TrimSuffix(inner, ")"), "?:")
	}
	for i, part := range strings.Split(text, "|") {
		one, err := strconv.ParseFloat(strings.ReplaceAll(part, `\.`, "."), 64)
		if err != nil || i > 0 && one != v {
			return 0, false
		}
		v = one
	}
	return v, true
}

// units returns the units of time by the words for them in names of metrics.
func units() map[string]time.Duration {
	return map[string]time.Duration{
		"seconds": time.Second, "second": time.Second, "secs": time.Second, "sec": time.Second, "s": time.Second,
		"milliseconds": time.Millisecond, "millisecond": time.Millisecond, "millis": time.Millisecond, "msec": time.Millisecond, "msecs": time.Millisecond, "ms": time.Millisecond,
		"microseconds": time.Microsecond, "microsecond": time.Microsecond, "micros": time.Microsecond, "usec": time.Microsecond, "usecs": time.Microsecond, "us": time.Microsecond,
		"nanoseconds": time.Nanosecond, "nanosecond": time.Nanosecond, "nanos": time.Nanosecond, "nsec": time.Nanosecond, "ns": time.Nanosecond,
		"minutes": time.Minute, "hours": time.Hour,
		"bytes": 0, "kilobytes": 0, "megabytes": 0, "bits": 0, "ratio": 0, "percent": 0, "size": 0, "celsius": 0, "tokens": 0, "rows": 0,
	}
}

// UnitOf is the unit of a histogram by its name, and whether the name says one. Envoy's
// times have none in their names and are milliseconds.
func UnitOf(metric string) (unit time.Duration, named bool) {
	words := strings.FieldsFunc(strings.ToLower(metric), func(r rune) bool { return r == '_' || r == ':' || r == '.' || r == '-' })
	known := units()
	for i := len(words) - 1; i >= 0; i-- {
		if u, ok := known[words[i]]; ok {
			return u, true
		}
	}
	if len(words) > 0 && words[0] == "envoy" && strings.Contains(metric, "_time") {
		return time.Millisecond, true
	}
	return time.Second, false
}
