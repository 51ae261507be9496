package hostfs_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"pgregory.net/rapid"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/internal/hostfs"
)

func TestTheKernelsFormsAreRead(t *testing.T) {
	for text, want := range map[string]trimtab.Amount{
		"max 100000\n": trimtab.Unlimited(), "150000 100000\n": trimtab.Units(1.5), "25000 50000": trimtab.Units(0.5),
	} {
		if q, err := hostfs.ParseCPUMax(text); err != nil || q.Amount() != want {
			t.Errorf("%q: %v, %v, want %v", text, q.Amount(), err, want)
		}
	}
	for _, text := range []string{"", "max", "1 2 3", "-5 100000", "100 0", "x 100000", "1e5 100000", "100000 99999999"} {
		if q, err := hostfs.ParseCPUMax(text); err == nil {
			t.Errorf("%q: %v, want an error", text, q)
		}
	}
	if q, err := hostfs.ParseCFS("-1\n", "100000\n"); err != nil || q.Amount() != trimtab.Unlimited() {
		t.Errorf("-1: %v, %v", q, err)
	}
	if q, err := hostfs.ParseCFS("-2\n", "100000\n"); err == nil {
		t.Errorf("-2: %v, want an error", q)
	}
}

func TestAQuotaReadsBackAsItWasWritten(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		q := hostfs.Quota{Period: rapid.Int64Range(hostfs.MinPeriod, hostfs.MaxPeriod).Draw(r, "period")}
		q = q.With(trimtab.Units(rapid.Float64Range(0, 1000).Draw(r, "cores")))
		if q.Micros < hostfs.MinQuota {
			r.Fatalf("quota %d is below the kernel's least", q.Micros)
		}
		if got, err := hostfs.ParseCPUMax(q.CPUMax()); err != nil || got != q {
			r.Fatalf("version 2: %v, %v, want %v", got, err, q)
		}
		if got := q.With(q.Amount()); got != q {
			r.Fatalf("%v in cores and back is %v", q, got)
		}
	})
}

func FuzzQuotaParsersAreTotal(f *testing.F) {
	for _, s := range []string{"max 100000\n", "150000 100000", "-1", "9223372036854775807 1000", ""} {
		f.Add(s, "100000")
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		for _, parse := range []func() (hostfs.Quota, error){
			func() (hostfs.Quota, error) { return hostfs.ParseCPUMax(a) },
			func() (hostfs.Quota, error) { return hostfs.ParseCFS(a, b) },
		} {
			if q, err := parse(); err == nil && q.Amount().Validate() != nil {
				t.Errorf("%q, %q: %v", a, b, q)
			}
		}
	})
}

func TestInOneLookTheQuotaOfAGroupIsReadOnce(t *testing.T) {
	dir := t.TempDir()
	for _, text := range []string{"100000 100000\n", "max 100000\n"} {
		if err := os.WriteFile(filepath.Join(dir, "cpu.max"), []byte("50000 100000\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		root, err := hostfs.OpenRoot(dir)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { root.Close() })
		look := hostfs.Look(t.Context())
		before, err := root.QuotaIn(look, ".")
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "cpu.max"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		want, err := root.Quota(".")
		if err != nil {
			t.Fatal(err)
		}
		if same, err := root.QuotaIn(look, "."); err != nil || same != before {
			t.Errorf("in the same look %v, %v, want %v", same, err, before)
		}
		for name, ctx := range map[string]context.Context{"the next look": hostfs.Look(t.Context()), "no look": t.Context()} {
			if now, err := root.QuotaIn(ctx, "."); err != nil || now != want || now == before {
				t.Errorf("in %s %v, %v, want %v", name, now, err, want)
			}
		}
	}
}
