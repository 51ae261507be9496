package pipeline

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/bus"
	"github.com/trimtab/trimtab/bus/bustest"
	"github.com/trimtab/trimtab/internal/metric"
	"github.com/trimtab/trimtab/internal/pause"
	"pgregory.net/rapid"
)

// memo is a step with a state: how many alerts it saw.
type memo struct {
	mu    sync.Mutex
	count map[string]int
}

func (m *memo) Step(_ time.Time, in trimtab.Value) []trimtab.Value {
	m.mu.Lock()
	defer m.mu.Unlock()
	if a, ok := in.(*trimtab.Alert); ok {
		m.count[a.Name]++
	}
	return nil
}

func (m *memo) Snapshot() map[string][]byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := map[string][]byte{}
	for k, n := range m.count {
		out[k] = fmt.Append(nil, n)
	}
	return out
}

func (m *memo) Restore(name string, state []byte) error {
	var n int
	if _, err := fmt.Sscan(string(state), &n); err != nil {
		return trimtab.Invalidf("state %q", state)
	}
	m.count[name] = n
	return nil
}

func (m *memo) Counts(yield func(name string, value float64, labels ...string)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	sum := 0
	for _, n := range m.count {
		sum += n
	}
	yield("trimtab_stage_panics_total", float64(sum), "memo")
	yield("trimtab_no_such_metric", 1)
	if sum == 1 {
		yield("trimtab_stage_ready", 1, "memo")
	}
}

func TestASnapshotOutlivesARestartAndABrokenOneIsIgnored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, set := bustest.NewMemory(), metric.NewSet()
		defer m.Close()
		stage := Stage{Name: "learn", Bus: m, Consumes: consumes(trimtab.KindAlert), Snapshots: &Snapshots{Every: time.Second}, Metrics: set}
		first := &memo{count: map[string]int{}}
		stage.Step = first
		stop := start(t, stage)
		for _, n := range []string{"a", "a", "b"} {
			if err := m.Publish(t.Context(), alert(n)); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(3 * time.Second)
		if n := value(t, set, "trimtab_stage_snapshots_total"); n == 0 {
			t.Error("nothing saved while running")
		}
		stop()
		k, err := m.Bucket(t.Context(), "snapshots")
		if err != nil {
			t.Fatal(err)
		}
		raw, _, err := k.Get(t.Context(), "learn/b")
		if err != nil {
			t.Fatal(err)
		}
		raw[len(raw)-1] ^= 1
		if _, err := k.Put(t.Context(), "learn/b", raw); err != nil {
			t.Fatal(err)
		}
		second := &memo{count: map[string]int{}}
		stage.Step = second
		start(t, stage)()
		if fmt.Sprint(second.count) != "map[a:2]" {
			t.Errorf("restored %v, want a:2 and nothing of the broken b", second.count)
		}
	})
}

// lateBus answers the first questions about its buckets too late.
type lateBus struct {
	bus.Bus
	late *int
}

type lateBucket struct {
	bus.Bucket
	late *int
}

func (b lateBus) Bucket(ctx context.Context, name string) (bus.Bucket, error) {
	k, err := b.Bus.Bucket(ctx, name)
	return lateBucket{k, b.late}, err
}

func (b lateBucket) wait(ctx context.Context) error {
	if *b.late--; *b.late >= 0 {
		<-ctx.Done()
	}
	return ctx.Err()
}

func (b lateBucket) Keys(ctx context.Context) ([]string, error) {
	if err := b.wait(ctx); err != nil {
		return nil, err
	}
	return b.Bucket.Keys(ctx)
}

func (b lateBucket) Get(ctx context.Context, key string) ([]byte, uint64, error) {
	if err := b.wait(ctx); err != nil {
		return nil, 0, err
	}
	return b.Bucket.Get(ctx, key)
}

func TestABusThatAnswersLateIsNoReasonToForgetWhatWasLearnt(t *testing.T) {
	for late, want := range map[int]string{1: "map[a:1 b:2]", 3: "map[a:1 b:2]", 1000: "map[]"} {
		synctest.Test(t, func(t *testing.T) {
			m := bustest.NewMemory()
			defer m.Close()
			k, err := m.Bucket(t.Context(), "snapshots")
			if err != nil {
				t.Fatal(err)
			}
			for name, n := range map[string]string{"a": "1", "b": "2"} {
				if _, err := k.Put(t.Context(), "learn/"+name, Seal([]byte(n))); err != nil {
					t.Fatal(err)
				}
			}
			step, left := &memo{count: map[string]int{}}, late
			start(t, Stage{Name: "learn", Bus: lateBus{m, &left}, Step: step, Snapshots: &Snapshots{}, Metrics: metric.NewSet()})()
			if got := fmt.Sprint(step.count); got != want {
				t.Errorf("after %d late answers %v is restored, want %v", late, got, want)
			}
		})
	}
}

// busyBus takes a tenth of a second for each state that it keeps.
type busyBus struct{ bus.Bus }

type busyBucket struct{ bus.Bucket }

func (b busyBus) Bucket(ctx context.Context, name string) (bus.Bucket, error) {
	k, err := b.Bus.Bucket(ctx, name)
	return busyBucket{k}, err
}

func (b busyBucket) Put(ctx context.Context, key string, value []byte) (uint64, error) {
	if pause.For(ctx, 100*time.Millisecond); ctx.Err() != nil {
		return 0, ctx.Err()
	}
	return b.Bucket.Put(ctx, key, value)
}

func TestTheStatesOfManyWorkloadsMayTakeLongerThanAnyOneOfThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := bustest.NewMemory()
		defer m.Close()
		step := &memo{count: map[string]int{}}
		for i := range 100 {
			step.count[fmt.Sprint(i)] = i
		}
		start(t, Stage{Name: "learn", Bus: busyBus{m}, Step: step, Snapshots: &Snapshots{}, Metrics: metric.NewSet()})()
		k, err := m.Bucket(t.Context(), "snapshots")
		if err != nil {
			t.Fatal(err)
		}
		if keys, err := k.Keys(t.Context()); err != nil || len(keys) != 100 {
			t.Errorf("%d states were kept, want 100: %v", len(keys), err)
		}
	})
}

func TestAStateComesBackAsItWasAlsoFromAnEarlierVersion(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		state := rapid.SliceOf(rapid.Byte()).Draw(t, "state")
		earlier := append(binary.LittleEndian.AppendUint32(nil, crc32.ChecksumIEEE(state)), state...)
		for _, raw := range [][]byte{Seal(state), earlier} {
			if got, err := Unseal(raw); err != nil || !bytes.Equal(got, state) {
				t.Errorf("%q comes back as %q, %v", state, got, err)
			}
		}
		raw := Seal(state)
		raw[rapid.IntRange(len(packed), len(raw)-1).Draw(t, "at")] ^= 1 << rapid.IntRange(0, 7).Draw(t, "bit")
		if got, err := Unseal(raw); err == nil && !bytes.Equal(got, state) {
			t.Errorf("damaged, %q comes back as %q", state, got)
		}
	})
}

func TestAStateThatClaimsToBeHugeIsRefused(t *testing.T) {
	if state, err := Unseal(Seal(make([]byte, snapshotMax+1))); err == nil {
		t.Errorf("%d bytes", len(state))
	}
}

// parted is a memo whose states are taken one by one.
type parted struct {
	memo
	taken  []string // the states that were taken one by one
	whole  int      // how often all were taken together
	vanish string   // a state that is gone once it was named
}

func (p *parted) Snapshot() map[string][]byte {
	p.change(func() { p.whole++ })
	return p.memo.Snapshot()
}

func (p *parted) change(do func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	do()
}

func (p *parted) States() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Collect(maps.Keys(p.count))
}

func (p *parted) State(name string) ([]byte, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.count, p.vanish)
	p.taken = append(p.taken, name)
	n, ok := p.count[name]
	return fmt.Append(nil, n), ok
}

func TestStatesThatCanBeTakenOneByOneAreAndTogetherOnlyAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := bustest.NewMemory()
		defer m.Close()
		step := &parted{memo: memo{count: map[string]int{"a": 1, "b": 2, "c": 3}}}
		states := func() string {
			k, err := m.Bucket(t.Context(), "snapshots")
			if err != nil {
				t.Fatal(err)
			}
			keys, err := k.Keys(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			out := ""
			for _, key := range keys {
				raw, _, err := k.Get(t.Context(), key)
				if err != nil {
					t.Fatal(err)
				}
				state, err := Unseal(raw)
				out += fmt.Sprintf("%s=%s %v ", key, state, err)
			}
			return out
		}
		stop := start(t, Stage{Name: "learn", Bus: m, Step: step, Snapshots: &Snapshots{Every: time.Minute}, Metrics: metric.NewSet()})
		time.Sleep(90 * time.Second)
		synctest.Wait()
		if got := states(); got != "learn/a=1 <nil> learn/b=2 <nil> learn/c=3 <nil> " || step.whole != 0 || fmt.Sprint(step.taken) != "[a b c]" {
			t.Errorf("kept %s, taken %v, together %d times", got, step.taken, step.whole)
		}
		step.change(func() { step.vanish = "b" })
		time.Sleep(time.Minute)
		synctest.Wait()
		if got := states(); got != "learn/a=1 <nil> learn/c=3 <nil> " || step.whole != 0 {
			t.Errorf("kept %s once a state was gone, together %d times", got, step.whole)
		}
		step.change(func() { step.count["a"] = 7 })
		stop()
		if got := states(); got != "learn/a=7 <nil> learn/c=3 <nil> " || step.whole != 1 {
			t.Errorf("kept %s at the end, together %d times", got, step.whole)
		}
	})
}

func TestCountsOfAStepBecomeMetrics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, set := bustest.NewMemory(), metric.NewSet()
		defer m.Close()
		defer start(t, Stage{Name: "s", Bus: m, Metrics: set, Consumes: consumes(trimtab.KindAlert), Step: &memo{count: map[string]int{}}})()
		for n := range 3 {
			if err := m.Publish(t.Context(), alert("x")); err != nil {
				t.Fatal(err)
			}
			time.Sleep(exportEvery + time.Millisecond)
			if v := value(t, set, "trimtab_stage_panics_total"); v != float64(n+1) {
				t.Errorf("counter %v, want %d", v, n+1)
			}
			if v := value(t, set, "trimtab_stage_ready"); (v == 1) != (n == 0) {
				t.Errorf("after %d: gauge %v", n+1, v)
			}
		}
	})
}
