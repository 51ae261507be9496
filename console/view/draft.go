package view

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Draft returns what a configuration may say of a service that was found in spans, as
// lines of a list of workloads; each has its reason. group is the control group that is
// named like the service, and cores what its host has; without them the draft only
// watches. recommends tells that it does more.
func Draft(row *Row, group string, cores float64) (lines []string, recommends bool) {
	add := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	load := "no load yet"
	if row.Load != nil {
		load = fmt.Sprintf("%.3g requests per second now", *row.Load)
	}
	name := row.Name
	if !plainName(name) {
		name = strconv.Quote(name)
	}
	add("  - name: %s # found in spans, service.name=%s: %s", name, name, load)
	p95, p99 := row.Latency["p95"].Duration(), row.Latency["p99"].Duration()
	if p95 > 0 {
		add("    slo: {latency: %v, fraction: 0.95} # measured: 95%% within %v, 99%% within %v; one and a half times the first, rounded up: put what your users need",
			proposed(p95), p95.Round(100*time.Microsecond), p99.Round(100*time.Microsecond))
	} else {
		add("    # slo: {latency: 200ms, fraction: 0.95} # no latency was measured yet")
	}
	if group == "" || !(cores > 0) || p95 <= 0 {
		add("    mode: off # no control group is named %s: write knob: {cgroup: PATH, cpu: {min: 0.1, max: 4}}, and then mode: recommend", name)
		return lines, false
	}
	add("    knob: {cgroup: %s, cpu: {max: %v}} # the control group of that name; max is all that this host has", group, cores)
	add("    mode: recommend # trimtab says what it would set, and writes nothing")
	return lines, true
}

// plainName tells that YAML reads a name as that text without quotes.
func plainName(name string) bool {
	for i, r := range name {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
		if !letter && (i == 0 || !strings.ContainsRune("0123456789-_.", r)) {
			return false
		}
	}
	return !slices.Contains([]string{"", "true", "false", "null", "yes", "no", "on", "off", "y", "n"}, strings.ToLower(name))
}

// proposed is one and a half times a latency, rounded up to two digits.
func proposed(measured time.Duration) time.Duration {
	v := float64(measured) * 1.5
	step := math.Pow(10, math.Floor(math.Log10(v))-1)
	return max(time.Duration(math.Ceil(v/step)*step), time.Millisecond).Round(time.Microsecond)
}
