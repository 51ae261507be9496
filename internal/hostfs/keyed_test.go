package hostfs

import "testing"

func TestALineOfAKeyedFileIsFoundByItsWholeName(t *testing.T) {
	const text = "anon 1\nanon_thp 2\noom 3\noom_kill 4\nbad x\n"
	for name, want := range map[string]uint64{"anon": 1, "anon_thp": 2, "oom": 3, "oom_kill": 4} {
		if got, ok := Keyed(text, name); got != want || !ok {
			t.Errorf("%s is %d, %v; want %d", name, got, ok, want)
		}
	}
	for _, name := range []string{"bad", "oom_", "thp", ""} {
		if got, ok := Keyed(text, name); ok || got != 0 {
			t.Errorf("%q is %d", name, got)
		}
	}
}
