package natsbus

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/bus"
)

func estimateOf(workload, model string) *trimtab.Estimate {
	return &trimtab.Estimate{Workload: workload, Model: model, Time: time.Unix(1, 0).UTC()}
}

// models collects the models of estimates in the order in which they come.
type models struct {
	mu  sync.Mutex
	got []string
}

func (m *models) handle(_ context.Context, d bus.Delivery) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.got = append(m.got, d.Value.(*trimtab.Estimate).Model)
	return nil
}

func (m *models) text() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return strings.Join(m.got, " ")
}

func publish(t *testing.T, b testBus, values ...trimtab.Value) {
	t.Helper()
	for _, v := range values {
		if err := b.Publish(t.Context(), v); err != nil {
			t.Fatal(err)
		}
	}
}

func subscribe(t *testing.T, b testBus, s bus.Subscription) {
	t.Helper()
	stop, err := b.Subscribe(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
}

func TestInsideAProcessTheVeryValueArrives(t *testing.T) {
	b := open(t, Config{})
	got := make(chan trimtab.Value, 1)
	subscribe(t, b, bus.Subscription{Kind: trimtab.KindEstimate, Handle: func(_ context.Context, d bus.Delivery) error {
		got <- d.Value
		return nil
	}})
	e := estimateOf("w", "m")
	publish(t, b, e)
	if v := <-got; v != trimtab.Value(e) {
		t.Errorf("%+v arrived, want the value that was published", v)
	}
}

func TestTheNewestOfEachKeySurvivesARestart(t *testing.T) {
	dir := t.TempDir()
	b := open(t, Config{Dir: dir})
	publish(t, b, estimateOf("a", "a1"), estimateOf("b", "b1"), estimateOf("a", "a2"))
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	// By one that others can reach, whose subscribers read the stream, too.
	for _, listen := range []string{"", "127.0.0.1:0"} {
		b = open(t, Config{Dir: dir, Listen: listen})
		var m models
		subscribe(t, b, bus.Subscription{Kind: trimtab.KindEstimate, Handle: m.handle})
		until(t, func() bool { return m.text() == "b1 a2" })
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestASlowSubscriberGetsTheNewestOnly(t *testing.T) {
	b := open(t, Config{})
	gate := make(chan struct{})
	var m models
	subscribe(t, b, bus.Subscription{Kind: trimtab.KindEstimate, Handle: func(ctx context.Context, d bus.Delivery) error {
		<-gate
		return m.handle(ctx, d)
	}})
	publish(t, b, estimateOf("a", "first"))
	until(t, func() bool {
		b.near.mu.Lock()
		defer b.near.mu.Unlock()
		return b.near.subs[trimtab.KindEstimate][0].now != nil
	})
	for i := range 100 {
		publish(t, b, estimateOf("a", fmt.Sprint("a", i)), estimateOf("b", fmt.Sprint("b", i)))
	}
	close(gate)
	until(t, func() bool { return m.text() == "first a99 b99" })
}

func TestALatestValueThatIsNotHandledComesAgainOrIsPutAside(t *testing.T) {
	b := open(t, Config{})
	var m models
	tries := map[string]int{}
	subscribe(t, b, bus.Subscription{Kind: trimtab.KindEstimate, Handle: func(ctx context.Context, d bus.Delivery) error {
		model := d.Value.(*trimtab.Estimate).Model
		if d.Again != tries[model] {
			t.Errorf("%s comes for the %d. time, told %d", model, tries[model], d.Again)
		}
		tries[model]++
		switch {
		case model == "poison":
			return trimtab.Invalidf("never")
		case model == "hopeless", model == "second" && tries[model] < 2:
			return errors.New("not now")
		}
		return m.handle(ctx, d)
	}})
	publish(t, b, estimateOf("a", "poison"), estimateOf("b", "hopeless"), estimateOf("c", "second"), estimateOf("d", "good"))
	until(t, func() bool { return m.text() == "second good" })
	if tries["poison"] != 1 || tries["hopeless"] != b.config.MaxDeliver || tries["second"] != 2 {
		t.Errorf("tries: %v", tries)
	}
	aside := b.Aside(trimtab.KindEstimate)
	if len(aside) != 2 || !slices.ContainsFunc(aside, func(a []byte) bool { return strings.Contains(string(a), "poison") }) {
		t.Errorf("%q was put aside", aside)
	}
	if n := b.Stats().Again[trimtab.KindEstimate]; n != uint64(b.config.MaxDeliver) {
		t.Errorf("%d counted again, want %d", n, b.config.MaxDeliver)
	}
}

func TestWhatIsNewIsStoredOnceAndWhatIsOvertakenNever(t *testing.T) {
	b := open(t, Config{})
	k := b.kinds[trimtab.KindEstimate]
	stored := func() uint64 {
		s, err := b.js.Stream(t.Context(), k.stream.Name)
		if err != nil {
			t.Fatal(err)
		}
		return s.CachedInfo().State.LastSeq
	}
	for i := range 10 {
		publish(t, b, estimateOf("a", fmt.Sprint(i)))
	}
	if n := stored(); n != 0 {
		t.Errorf("%d stored at once", n)
	}
	for range 2 {
		b.near.flush(t.Context(), k)
		if n := stored(); n != 1 {
			t.Errorf("%d were stored, want the newest once", n)
		}
	}
	leave := b.near.join(t.Context(), k)
	publish(t, b, estimateOf("a", "x"))
	if n := stored(); n != 2 {
		t.Errorf("%d were stored while a group subscribes, want 2", n)
	}
	leave()
}

func TestWhileTheStoreRefusesPublishersOfLatestValuesAreTold(t *testing.T) {
	b := open(t, Config{})
	k := b.kinds[trimtab.KindEstimate]
	publish(t, b, estimateOf("a", "1"))
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	b.near.flush(gone, k) // fails
	if k.unstored.Load() == nil {
		t.Fatal("a value that could not be stored is not told of")
	}
	if err := b.Publish(gone, estimateOf("a", "2")); err == nil {
		t.Error("published, though it could not be stored")
	}
	publish(t, b, estimateOf("a", "3"))
	if k.unstored.Load() != nil {
		t.Error("still told of after the store took a value")
	}
}

// Where a group with MaxAge is, only this process needs to know: to keep it in a file is two
// files a value. In another life the values of this one are passed over.
func TestAGroupThatPassesOverWhatIsOldKeepsItsPlaceForALife(t *testing.T) {
	dir := t.TempDir()
	got := make(chan string, 100)
	join := func(b testBus) (leave func()) {
		t.Helper()
		stop, err := b.Subscribe(t.Context(), bus.Subscription{Kind: trimtab.KindAlert, Consumer: "group", MaxAge: time.Hour, Handle: func(_ context.Context, d bus.Delivery) error {
			got <- d.Value.(*trimtab.Alert).Name
			return nil
		}})
		if err != nil {
			t.Fatal(err)
		}
		return stop
	}
	arrives := func(want string) {
		t.Helper()
		if name := next(t, got); name != want {
			t.Errorf("%s arrives, want %s", name, want)
		}
	}
	// The first life leaves a file, since others could reach the bus.
	for i, listen := range []string{"127.0.0.1:0", "", ""} {
		b := open(t, Config{Dir: dir, Listen: listen})
		leave := join(b)
		publish(t, b, alertOf("a", fmt.Sprint(i, " first")))
		arrives(fmt.Sprint(i, " first"))
		leave()
		publish(t, b, alertOf("a", fmt.Sprint(i, " meanwhile")))
		leave = join(b)
		arrives(fmt.Sprint(i, " meanwhile"))
		leave()
		publish(t, b, alertOf("a", fmt.Sprint(i, " at the end")))
		_, err := os.Stat(filepath.Join(storeDir(dir), "$G", "streams", "ALERTS", "obs", "group"))
		if file := err == nil; file != (listen != "") {
			t.Errorf("life %d, listening on %q: a file of the group: %v", i, listen, file)
		}
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
