package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// maxCombinations bounds the combinations of values of one match that are compared.
const maxCombinations = 1000

// sameSpans refuses a workload whose spans an earlier one takes: spans go to the first
// workload that they match.
func (v *validator) sameSpans() {
	taken := map[string]int{} // by combination of attributes and values: the first workload
	for i := range v.config.Workloads {
		w := &v.config.Workloads[i]
		if v.config.IsJob(w) || w.Name == "" {
			continue
		}
		match := w.Match.Spans
		if match == nil {
			match = map[string]Values{"service.name": {w.Name}}
		}
		keys := slices.Sorted(maps.Keys(match))
		for _, k := range keys {
			// The earlier workload has one attribute alone, so it takes all spans with that.
			if len(keys) < 2 || len(match[k]) != 1 {
				continue
			}
			if first, ok := taken[combination([]string{k}, match[k])]; ok {
				v.takenBy(i, first, k, match[k][0])
				break
			}
		}
		for _, values := range combinations(keys, match) {
			if len(values) == 0 {
				break // an empty match is a mistake of its own
			}
			c := combination(keys, values)
			first, twice := taken[c]
			if twice && first != i {
				v.takenBy(i, first, keys[0], values[0])
				break
			}
			taken[c] = i
		}
	}
}

func (v *validator) takenBy(i, first int, key, value string) {
	all := v.config.Workloads
	at := fmt.Sprintf("workloads[%d].match.spans.%s", i, key)
	if !v.has(at) {
		at = fmt.Sprintf("workloads[%d].name", i)
	}
	line := v.where(fmt.Sprintf("workloads[%d].name", first)).line
	if all[i].Name == all[first].Name {
		return // a second workload of that name is told already
	}
	v.fail(at, fmt.Sprintf("spans with %s=%s are those of %q already", clip(key), clip(value), clip(all[first].Name)),
		fmt.Sprintf("spans go to the first workload that they match, in line %d: give one of both another match.spans", line))
}

// combination names attributes with one value each.
func combination(keys []string, values []string) string {
	var b strings.Builder
	for i, k := range keys {
		fmt.Fprintf(&b, "%q=%q ", k, values[min(i, len(values)-1)])
	}
	return b.String()
}

// combinations lists the combinations of the values of all attributes, only the first of them if
// there are too many.
func combinations(keys []string, match map[string]Values) [][]string {
	out := [][]string{nil}
	for _, k := range keys {
		var next [][]string
		for _, before := range out {
			for _, value := range match[k] {
				if len(next) < maxCombinations {
					next = append(next, append(slices.Clone(before), value))
				}
			}
		}
		out = next
	}
	return out
}
