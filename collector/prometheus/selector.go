package prometheus

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// ageQuery builds the query for the ages in seconds of each selector's series: of the newest and
// of the oldest series of each target. The label trimtab distinguishes them, since "or" drops
// series with equal labels.
func ageQuery(selectors []string, by string) string {
	var parts []string
	for i, s := range selectors {
		for _, of := range []struct{ word, function string }{{"newest", "min"}, {"oldest", "max"}} {
			parts = append(parts, fmt.Sprintf(`label_replace(%s by (%s) (time() - timestamp(%s)), "trimtab", "%s %d", "", "")`, of.function, by, s, of.word, i))
		}
	}
	return strings.Join(parts, " or ")
}

// byTarget are the labels that Prometheus gives every series of one scrape target.
const byTarget = "job, instance"

// upQuery builds the query for up, and for the age of its newest sample, of the targets that the
// selectors find, and of those that are away. It finds them as ageQuery does: VictoriaMetrics
// evaluates a selector alone only for some scrape intervals after its last sample.
func upQuery(selectors []string, away []target) string {
	var works, ages []string
	for _, s := range selectors {
		works = append(works, fmt.Sprintf("up and on (%s) timestamp(%s)", byTarget, s))
		ages = append(ages, fmt.Sprintf("time() - timestamp(up) and on (%s) timestamp(%s)", byTarget, s))
	}
	instances := map[string][]string{}
	for _, t := range away {
		instances[t.job] = append(instances[t.job], regexp.QuoteMeta(t.instance))
	}
	for _, job := range slices.Sorted(maps.Keys(instances)) {
		up := fmt.Sprintf("up{job=%q,instance=~%q}", job, strings.Join(instances[job], "|"))
		works, ages = append(works, up), append(ages, fmt.Sprintf("time() - timestamp(%s)", up))
	}
	return fmt.Sprintf(`label_replace(min by (%[1]s) (%[2]s), "trimtab", "up", "", "") or label_replace(min by (%[1]s) (%[3]s), "trimtab", "age", "", "")`,
		byTarget, strings.Join(works, " or "), strings.Join(ages, " or "))
}
