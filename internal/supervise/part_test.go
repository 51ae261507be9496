package supervise

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
)

// recorder makes parts that note what happens to them.
type recorder struct{ log []string }

func (r *recorder) part(name, key string, fail error) Part {
	return Part{Name: name, Key: key, Start: func(context.Context) (func() error, error) {
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
	p := Parts{Logger: slog.New(slog.DiscardHandler), Stops: func(string) {}}
	ctx := t.Context()
	if err := p.Apply(ctx, []Part{r.part("a", "1", nil), r.part("b", "1", nil), r.part("c", "1", nil)}); err != nil {
		t.Fatal(err)
	}
	if got := r.take(); got != "+a1 +b1 +c1" {
		t.Error(got)
	}
	if err := p.Apply(ctx, []Part{r.part("a", "2", nil), r.part("b", "1", nil), r.part("d", "1", nil)}); err != nil {
		t.Fatal(err)
	}
	if got := r.take(); got != "-c1 -a1 +a2 +d1" {
		t.Error(got)
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	if got := r.take(); got != "-d1 -b1 -a2" {
		t.Error(got)
	}
}

func TestAConfigurationThatDoesNotStartBringsTheOldOneBack(t *testing.T) {
	var r recorder
	p := Parts{Logger: slog.New(slog.DiscardHandler), Stops: func(string) {}}
	ctx := t.Context()
	if err := p.Apply(ctx, []Part{r.part("a", "1", nil), r.part("b", "1", nil)}); err != nil {
		t.Fatal(err)
	}
	r.take()
	broken := errors.New("port in use")
	if err := p.Apply(ctx, []Part{r.part("a", "2", nil), r.part("b", "2", broken)}); !errors.Is(err, broken) {
		t.Fatal(err)
	}
	if got := r.take(); got != "-b1 -a1 +a2 -a2 +a1 +b1" {
		t.Error(got)
	}
}
