package natsbus

import (
	"context"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/bus"
)

func TestThin(t *testing.T) {
	t0 := time.Now()
	b, err := Open(t.Context(), Config{Dir: t.TempDir(), Source: "x"})
	if err != nil {
		t.Fatal(err)
	}
	t.Log(time.Since(t0))
	defer b.Close()
	got := make(chan bus.Delivery, 10)
	for _, k := range []trimtab.Kind{trimtab.KindAlert, trimtab.KindSample, trimtab.KindSpans} {
		stop, err := b.Subscribe(t.Context(), bus.Subscription{Kind: k, Handle: func(ctx context.Context, d bus.Delivery) error { got <- d; return nil }})
		if err != nil {
			t.Fatal(err)
		}
		defer stop()
	}
	var w trimtab.FrameWriter
	for _, v := range []trimtab.Value{&trimtab.Alert{Workload: "a b", Name: "x", Time: time.Now()}, &trimtab.Sample{Workload: "a.b", Quantity: trimtab.Load, Source: "x", Time: time.Now(), Value: 1}, w.Frame(3)} {
		t0 := time.Now()
		if err := b.Publish(t.Context(), v); err != nil {
			t.Fatal(err)
		}
		d := <-got
		t.Log(time.Since(t0), d.Value.Key(), d.Origin)
	}
	k, err := b.Bucket(t.Context(), "leaders")
	if err != nil {
		t.Fatal(err)
	}
	r, err := k.Update(t.Context(), "a/b", []byte("x"), 0)
	t.Log(r, err)
	_, err = k.Update(t.Context(), "a/b", []byte("x"), 0)
	t.Log(err)
	_, err = k.Update(t.Context(), "a/b", []byte("x"), 7)
	t.Log(err)
	_, _, err = k.Get(t.Context(), "zz")
	t.Log(err)
	t.Log(b.Stats())
}
