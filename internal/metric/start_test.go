package metric

import "testing"

func TestSeriesThatStartAtZeroAreThereBeforeTheFirstEvent(t *testing.T) {
	families, err := NewSet().Gather()
	if err != nil {
		t.Fatal(err)
	}
	series := map[string]int{}
	for _, f := range families {
		series[f.GetName()] = len(f.GetMetric())
	}
	for _, r := range Table() {
		want := len(r.Start)
		if r.Type == Counter && len(r.Labels) == 0 {
			want = 1
		}
		if want > 0 && (r.Type != Counter || series[r.Name] != want) {
			t.Errorf("%s (%s): %d series at the start, want %d of a counter", r.Name, r.Type, series[r.Name], want)
		}
	}
	if series["trimtab_actuator_actions_total"] == 0 {
		t.Error("the first failed action would not be seen")
	}
}
