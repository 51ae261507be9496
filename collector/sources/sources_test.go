package sources

import "testing"

func TestEverySourceSaysWhatTheProgramMustKnow(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range All() {
		if s.Name == "" || seen[s.Name] || s.About == "" || s.Interval <= 0 || s.Open == nil || len(s.Quantities) == 0 {
			t.Errorf("%q: a field is missing, or the name is given twice", s.Name)
		}
		seen[s.Name] = true
		for _, q := range s.Quantities {
			if !q.Monitored() {
				t.Errorf("%s: trimtab.Quantity.Monitored does not know %s", s.Name, q)
			}
		}
	}
}
