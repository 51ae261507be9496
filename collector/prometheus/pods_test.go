package prometheus

import (
	"fmt"
	"maps"
	"strings"
	"testing"
)

// told is the number of each pod, or why it has none.
func told(t *testing.T, c *counters, counter bool, series ...string) map[string]string {
	t.Helper()
	r := &reply{}
	r.Data.Type = "vector"
	r.Data.Result = []byte("[" + strings.Join(series, ",") + "]")
	all, err := r.pods(&Query{Pods: true, Counter: counter}, c)
	if err != nil {
		return map[string]string{"": err.Error()}
	}
	out := map[string]string{}
	for _, n := range all {
		out[n.instance] = fmt.Sprint(n.value)
		if n.err != nil {
			out[n.instance] = n.err.Error()
		}
	}
	return out
}

func of(pod, id, value string) string {
	return fmt.Sprintf(`{"metric":{"id":%q,"pod":%q},"value":[1700000000,%q]}`, id, pod, value)
}

// A container that restarts has a series of its own, an old series may end and come back, and a counter
// may go back: no kill is lost or told twice, and none is made up.
func TestACounterOfPodsTellsWhatRoseSinceTheAnswerBefore(t *testing.T) {
	var c counters
	for i, round := range []struct {
		series []string
		want   map[string]string
	}{
		{[]string{of("a", "1", "3"), of("b", "1", "0")}, map[string]string{"a": "first reading", "b": "first reading"}},
		{[]string{of("a", "1", "4"), of("a", "2", "1"), of("b", "1", "0")}, map[string]string{"a": "2", "b": "0"}},
		{[]string{of("a", "2", "1")}, map[string]string{"a": "0"}},
		{[]string{of("a", "1", "4"), of("a", "2", "1"), of("c", "1", "9")}, map[string]string{"a": "0", "c": "first reading"}},
		{[]string{of("a", "2", "0"), of("c", "1", "10"), of("b", "1", "1")}, map[string]string{"a": "0", "b": "1", "c": "1"}},
		{[]string{of("a", "2", "NaN"), of("c", "1", "8")}, map[string]string{"a": "NaN", "c": "8"}},
	} {
		got := told(t, &c, true, round.series...)
		if strings.Contains(got["a"], "NaN") || strings.Contains(got["a"], "number") {
			got["a"] = "NaN"
		}
		if !maps.Equal(got, round.want) {
			t.Errorf("answer %d: %q, want %q", i, got, round.want)
		}
	}
}

func TestAValueOfPodsIsTheLargestOfEach(t *testing.T) {
	var c counters
	if got := told(t, &c, false, of("a", "1", "5"), of("a", "2", "7")); got["a"] != "7" || len(got) != 1 {
		t.Errorf("%q", got)
	}
	for _, bad := range []string{`{"metric":{},"value":[1,"2"]}`, `{"metric":{"pod":"a"}}`, `7`} {
		if got := told(t, &c, false, bad); got[""] == "" {
			t.Errorf("%s: %q", bad, got)
		}
	}
	if got := told(t, &c, false); got[""] != "empty result" {
		t.Errorf("%q", got)
	}
}
