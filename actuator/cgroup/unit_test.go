package cgroup

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/internal/hostfs"
)

func TestAUnitIsWhatLiesInSlicesAlone(t *testing.T) {
	for path, want := range map[string]string{
		"shop.slice": "shop.slice", "shop.slice/checkout.service": "checkout.service",
		"shop.slice/shop-a.slice/x.scope": "x.scope", "init.scope": "init.scope", "system.slice/_cpu.service": "cpu.service",
		"": "", "shop": "", "shop.slice/plain": "", "shop/checkout.service": "",
		"system.slice/a.service/b.service":                                "",
		"user.slice/user-1.slice/user@1.service/app.slice/editor.service": "",
		"machine.slice/vm.scope/system.slice/inner.service":               "",
	} {
		if got := unitAt(path); got != want {
			t.Errorf("%s: unit %q, want %q", path, got, want)
		}
	}
}

// The oracle is what systemd does with what it stored: percent of a second,
// then of the period, each rounded down.
func TestWholePercentsAreKeptByAUnit(t *testing.T) {
	if got := wholePercent(trimtab.Unlimited(), hostfs.DefaultPeriod); !got.Unlimited {
		t.Errorf("unlimited becomes %v", got)
	}
	rapid.Check(t, func(r *rapid.T) {
		period := 1000 * rapid.Int64Range(1, 1000).Draw(r, "period in ms")
		a := trimtab.Units(rapid.Float64Range(0, 1000).Draw(r, "cores"))
		got := wholePercent(a, period)
		if again := wholePercent(got, period); again != got {
			r.Fatalf("%v becomes %v, and that %v", a, got, again)
		}
		stored := perSecond(got) / 10000 // CPUQuota= in percent
		if stored < 1 || a.Value >= 0.01 && (got.Value > a.Value+1e-6 || got.Value < a.Value-0.01) {
			r.Fatalf("%v becomes %v, stored as %d%%", a, got, stored)
		}
		if quota := int64(stored) * 10000 * period / 1e6; quota >= hostfs.MinQuota {
			if kept := (hostfs.Quota{Micros: quota, Period: period}).Amount(); kept != got {
				r.Fatalf("%v becomes %v, and after a reload %v", a, got, kept)
			}
		}
	})
}
