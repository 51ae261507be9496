package view

import (
	"math"
	"testing"

	"github.com/trimtab/trimtab"
)

func TestNumbersHaveThreeDigitsAndNoExponent(t *testing.T) {
	for v, want := range map[float64]string{
		0: "0", 0.35000000000000003: "0.35", 1.2000000000000002: "1.2", 0.0700000000001: "0.07",
		12345678: "12345678", 99.95: "100", 0.00001234: "0.0000123", 4: "4", 10: "10", 250: "250",
		-1.5: "-1.5", math.Inf(1): Missing,
	} {
		if got := Number(v); got != want {
			t.Errorf("%v: %q, want %q", v, got, want)
		}
	}
	if got := Number(math.NaN()); got != Missing {
		t.Error(got)
	}
}

func TestAnAmountHasItsUnitAndOneIsNotMany(t *testing.T) {
	for _, c := range []struct {
		v        float64
		resource string
		want     string
	}{{1, "cpu", "1 core"}, {0.3, "cpu", "0.3 cores"}, {12000, "frequency", "12000 MHz"}, {1, "cores", "1 physical core"}, {1, "llc", "1 way"},
		{2 << 30, "memory", "2 GiB"}, {1, "gpus", "1 gpus"}} {
		if got := Sized(c.v, c.resource); got != c.want {
			t.Errorf("%v of %s: %q, want %q", c.v, c.resource, got, c.want)
		}
	}
}

func TestAShareIsNeverRoundedUpToAll(t *testing.T) {
	for v, want := range map[float64]string{1: "100%", 0.99999: "99.9%", 0.995: "99.5%", 0.874: "87%", 0: "0%"} {
		if got := Percent(v); got != want {
			t.Errorf("%v: %q, want %q", v, got, want)
		}
	}
}

func TestTimesCarryTheirUnit(t *testing.T) {
	l := map[string]trimtab.Seconds{"a": 0.0012, "b": 0.0304, "c": 2.02}
	for name, want := range map[string]string{"a": "1.2 ms", "b": "30 ms", "c": "2.02 s", "d": Missing} {
		if got := Latency(l, name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	for s, want := range map[trimtab.Seconds]string{-1: "0 s", 0.44: "0.4 s", 33: "33 s", 600: "10 min", 7300: "2 h", 1e6: "12 d"} {
		if got := Age(s); got != want {
			t.Errorf("%v: %q, want %q", s, got, want)
		}
	}
}
