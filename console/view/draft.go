package view

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/trimtab/trimtab"
)

// draftMargin is how much longer than the upper bound of the measured p95 a drafted SLO
// is: the loads to come may be higher than those seen.
const draftMargin = 1.5

// draftLong is how long a service must have been seen before its draft no longer warns
// that other hours may be slower: the bound speaks of the hours seen.
const draftLong = 20 * time.Hour

// MakeGroup says how workloads get a group of their own in common, in which they share CPU by
// weight.
const MakeGroup = "put the control groups of the pool's workloads, and nothing else, below one group: Slice=shop.slice in their units, --cgroup-parent of containers, or mkdir; then name them in their knobs"

// DraftKnob is where a service's limits are, as far as was found. Memory is a key of the knob, with a comma
// before it, and Why its reason; "": the memory is not known.
type DraftKnob struct {
	Group       string
	Cores       float64
	Memory, Why string
}

// Draft returns what a configuration may say of a service that was found in spans, as
// lines of a list of workloads; each has its reason. at is the control group that is
// named like the service, with the cores that its host has; without them, or with too few
// requests for an SLO, the draft only watches. recommends: the draft does more than that.
func Draft(row *Row, at DraftKnob) (lines []string, recommends bool) {
	add := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	load := "no load yet"
	if row.Load != nil {
		load = fmt.Sprintf("%.3g requests per second now", *row.Load)
		if row.LoadStale && row.LoadAge != nil {
			load = fmt.Sprintf("%.3g requests per second %s ago, and none seen since", *row.Load, Age(*row.LoadAge))
		}
	}
	name := DraftText(DraftName(row.Name))
	add("  - name: %s # found in spans, service.name=%s: %s", name, DraftText(row.Name), load)
	if DraftName(row.Name) != row.Name {
		add("    match: {spans: {service.name: %s}} # what its spans call it; the name above has the characters that a name may have", DraftText(row.Name))
	}
	slo, drafted := draftSLO(row)
	add("    %s", slo)
	knob := at.Group != "" && at.Cores > 0
	if knob {
		comment := ""
		if !drafted {
			comment = "# "
		}
		add("    %sknob: {cgroup: %s, cpu: {max: %v}%s} # the control group of that name; max is all that there is%s", comment, DraftText(at.Group), at.Cores, at.Memory, at.Why)
	}
	switch {
	case knob && drafted:
		add("    mode: recommend # trimtab says what it would set, and writes nothing")
		return lines, true
	case knob:
		add("    mode: off # write an slo first; then use the knob above, and mode: recommend")
	default:
		add("    mode: off # no control group is named %s: write knob: {cgroup: PATH, cpu: {min: 0.1, max: 4}}, and then mode: recommend", name)
	}
	return lines, false
}

// draftSLO returns the line of the SLO with its reason. drafted is false where too few
// requests were seen: then the line is a comment, and its latency a guess.
func draftSLO(row *Row) (line string, drafted bool) {
	o := row.Observed
	if o == nil {
		latency, why := 200*time.Millisecond, "no latency was measured yet"
		if p95 := row.Latency["p95"].Duration(); p95 > 0 {
			latency, why = proposed(p95), "the number of requests is not known"
		}
		return fmt.Sprintf("# slo: {latency: %v, fraction: 0.95} # a guess: %s. Put what your users need", latency, why), false
	}
	seen := fmt.Sprintf("%s in %v, at %.3g requests/s on average and %.3g at most", count(o.Requests, "request"), period(o.To.Sub(o.From)), o.Load, o.LoadMost)
	if o.P95Upper == nil {
		return fmt.Sprintf("# slo: {latency: %v, fraction: 0.95} # a guess: saw only %s; %.0f are needed to bound the latency of 95%% of them. Put what your users need, or draft again later",
			proposed(o.P95.Duration()), seen, trimtab.ObservedNeeded()), false
	}
	again := "if the usual load is higher, draft again under it"
	if o.To.Sub(o.From) < draftLong {
		again = "other hours may be slower: draft again after a usual day"
	}
	latency, _ := Proposed(o)
	return fmt.Sprintf("slo: {latency: %v, fraction: 0.95} # saw %s: 95%% of them took at most %v, with 95%% confidence at most %v; this is %v times that, rounded up. Put what your users need; %s",
		latency, seen, digits(o.P95.Duration()), digits(o.P95Upper.Duration()), draftMargin, again), true
}

// Proposed returns the latency within which 95% of the requests of a service are to be answered, as
// its draft has it; false: too few requests were seen.
func Proposed(o *trimtab.Observed) (latency time.Duration, ok bool) {
	if o == nil || o.P95Upper == nil {
		return 0, false
	}
	return proposed(o.P95Upper.Duration()), true
}

// count is a number of things with its word.
func count(n float64, word string) string {
	if n = math.Round(n); n != 1 {
		word += "s"
	}
	return fmt.Sprintf("%.0f %s", n, word)
}

// period is a length of time as people say it: 40s, 12m, 3h, 5d.
func period(d time.Duration) string {
	switch {
	case d < 2*time.Minute:
		return fmt.Sprintf("%.0fs", d.Seconds())
	case d < 2*time.Hour:
		return fmt.Sprintf("%.0fm", d.Minutes())
	case d < 48*time.Hour:
		return fmt.Sprintf("%.0fh", d.Hours())
	}
	return fmt.Sprintf("%.0fd", d.Hours()/24)
}

// digits rounds a latency to three digits.
func digits(d time.Duration) time.Duration {
	if d <= 0 {
		return d
	}
	unit := time.Duration(math.Pow(10, math.Floor(math.Log10(float64(d)))-2))
	return d.Round(max(unit, 1))
}

// DraftName makes a workload's name of a service's name: letters, digits, '.', '_', '-',
// '/' and ':', the first a letter or digit.
func DraftName(service string) string {
	name := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._-/:", r) {
			return r
		}
		return '-'
	}, service)
	if name == "" || strings.ContainsRune("._-/:", rune(name[0])) {
		name = "service" + name
	}
	return name[:min(len(name), 253)]
}

// DraftText writes a text in YAML.
func DraftText(s string) string {
	if plainName(s) {
		return s
	}
	return strconv.Quote(s)
}

// plainName reports whether YAML reads a name without quotes as that text.
func plainName(name string) bool {
	for i, r := range name {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
		if !letter && (i == 0 || !strings.ContainsRune("0123456789-_./", r)) {
			return false
		}
	}
	return !slices.Contains([]string{"", "true", "false", "null", "yes", "no", "on", "off", "y", "n"}, strings.ToLower(name))
}

// proposed is a latency with the margin, rounded up to one that people write: 1, 2, 5,
// 10, 15, 20, 25, 30, 40, 50, 75, 100, 150, … ms.
func proposed(measured time.Duration) time.Duration {
	v := float64(measured) * draftMargin
	for _, ms := range []float64{1, 2, 5} {
		if limit := ms * 1e6; v <= limit {
			return time.Duration(limit)
		}
	}
	for decade := 1e7; decade < math.MaxInt64/100; decade *= 10 {
		for _, step := range []float64{1, 1.5, 2, 2.5, 3, 4, 5, 7.5} {
			if limit := step * decade; v <= limit {
				return time.Duration(limit)
			}
		}
	}
	return measured
}
