package site

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/trimtab/trimtab/config"
)

// recorder makes parts that note what happens to them.
type recorder struct{ log []string }

func (r *recorder) part(name, key string, fail error) part {
	return part{name: name, key: key, start: func(context.Context) (func() error, error) {
		if fail != nil {
			return nil, fail
		}
		r.log = append(r.log, "+"+name+key)
		return func() error { r.log = append(r.log, "-"+name+key); return nil }, nil
	}}
}

func (r *recorder) take() string {
	s := strings.Join(r.log, " ")
	r.log = nil
	return s
}

func TestOverAReloadOnlyWhatChangedIsRestartedInReverseOrderOfTheFlow(t *testing.T) {
	var r recorder
	p := parts{logger: slog.New(slog.DiscardHandler), stops: func(string) {}}
	ctx := t.Context()
	if err := p.apply(ctx, []part{r.part("a", "1", nil), r.part("b", "1", nil), r.part("c", "1", nil)}); err != nil {
		t.Fatal(err)
	}
	if got := r.take(); got != "+a1 +b1 +c1" {
		t.Error(got)
	}
	if err := p.apply(ctx, []part{r.part("a", "2", nil), r.part("b", "1", nil), r.part("d", "1", nil)}); err != nil {
		t.Fatal(err)
	}
	if got := r.take(); got != "-c1 -a1 +a2 +d1" {
		t.Error(got)
	}
	if err := p.close(); err != nil {
		t.Fatal(err)
	}
	if got := r.take(); got != "-d1 -b1 -a2" {
		t.Error(got)
	}
}

func TestAConfigurationThatDoesNotStartBringsTheOldOneBack(t *testing.T) {
	var r recorder
	p := parts{logger: slog.New(slog.DiscardHandler), stops: func(string) {}}
	ctx := t.Context()
	if err := p.apply(ctx, []part{r.part("a", "1", nil), r.part("b", "1", nil)}); err != nil {
		t.Fatal(err)
	}
	r.take()
	broken := errors.New("port in use")
	if err := p.apply(ctx, []part{r.part("a", "2", nil), r.part("b", "2", broken)}); !errors.Is(err, broken) {
		t.Fatal(err)
	}
	if got := r.take(); got != "-b1 -a1 +a2 -a2 +a1 +b1" {
		t.Error(got)
	}
}

func TestAProfileThatChangedIsReadAtTheNextReload(t *testing.T) {
	file := filepath.Join(t.TempDir(), "profile.csv")
	cfg, err := config.Parse("shop.yaml", []byte(fmt.Sprintf("pool: {cpu: 4}\nworkloads: [{name: shop, slo: {performance: 1}, fallback: {profile: %q}, knob: {cgroup: shop, cpu: {max: 2}}}]\n", file)))
	if err != nil {
		t.Fatal(err)
	}
	key := func(performance string) string {
		t.Helper()
		if err := os.WriteFile(file, []byte("allocation_per_load,performance\n0.003,0.5\n0.006,"+performance+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		parts, err := (&Site{}).learnPart(cfg)
		if err != nil {
			t.Fatal(err)
		}
		return parts[0].key
	}
	first := key("0.9")
	if key("0.9") != first {
		t.Error("an unchanged profile would restart the analyzer")
	}
	if key("0.95") == first {
		t.Error("a changed profile would not be taken over")
	}
}
