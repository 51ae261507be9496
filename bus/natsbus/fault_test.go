package natsbus

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/bus"
	"github.com/trimtab/trimtab/topic"
	"pgregory.net/rapid"
)

func TestAnAddressInUseIsToldByName(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, err = Open(t.Context(), Config{Dir: t.TempDir(), Source: "x", Listen: l.Addr().String()})
	if err == nil || !strings.Contains(err.Error(), l.Addr().String()) {
		t.Errorf("got %v, want the address", err)
	}
}

func TestADirectoryThatCannotBeUsedIsToldByName(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(file, "store")
	if _, err := Open(t.Context(), Config{Dir: dir, Source: "x"}); err == nil || !strings.Contains(err.Error(), dir) {
		t.Errorf("got %v, want the path", err)
	}
}

func TestAStoreHasOneUser(t *testing.T) {
	b := open(t, Config{})
	if _, err := Open(t.Context(), Config{Dir: b.config.Dir, Source: "y"}); !errors.Is(err, trimtab.ErrRefused) {
		t.Errorf("got %v, want ErrRefused", err)
	}
}

func TestAnEmbeddedServerListensOnLoopbackOnlyAndOnlyWhenTold(t *testing.T) {
	if b := open(t, Config{}); b.URL() != "" || b.server.Addr() != nil {
		t.Errorf("listens on %v", b.server.Addr())
	}
	for _, address := range []string{"0.0.0.0:0", ":4222", "192.0.2.1:4222", "example.org:1"} {
		if _, err := Open(t.Context(), Config{Dir: t.TempDir(), Source: "x", Listen: address}); !errors.Is(err, trimtab.ErrRefused) {
			t.Errorf("%s: got %v, want ErrRefused", address, err)
		}
	}
	b := open(t, Config{Listen: "127.0.0.1:0"})
	other := open(t, Config{URL: b.URL(), Source: "other"})
	if err := other.Publish(t.Context(), alertOf("w", "1")); err != nil {
		t.Error(err)
	}
}

func TestAServerOutOfReachIsToldWithoutItsPassword(t *testing.T) {
	_, err := Open(t.Context(), Config{URL: "nats://user:secret@127.0.0.1:1", Source: "x"})
	if err == nil || strings.Contains(err.Error(), "secret") || !strings.Contains(err.Error(), "127.0.0.1:1") {
		t.Errorf("got %v", err)
	}
}

func alertOf(workload, name string) *trimtab.Alert {
	return &trimtab.Alert{Workload: workload, Name: name, Time: time.Unix(1, 0)}
}

// damaged opens the store at dir after its files were damaged and checks that
// it works, whatever is left.
func damaged(t *testing.T, dir string) {
	t.Helper()
	b := open(t, Config{Dir: dir})
	defer b.Close()
	got := make(chan string, 100)
	if _, err := b.Subscribe(t.Context(), bus.Subscription{Kind: trimtab.KindAlert, Handle: func(_ context.Context, d bus.Delivery) error {
		got <- d.Value.(*trimtab.Alert).Name
		return nil
	}}); err != nil {
		t.Fatal(err)
	}
	if err := b.Publish(t.Context(), alertOf("w", "after")); err != nil {
		t.Fatal(err)
	}
	select {
	case name := <-got:
		if name != "after" {
			t.Errorf("got %q", name)
		}
	case <-time.After(time.Minute):
		t.Error("nothing is delivered")
	}
}

func TestACorruptStoreDoesNotPreventTheStart(t *testing.T) {
	for name, damage := range map[string]func(path string, data []byte) []byte{
		"cut off":   func(_ string, data []byte) []byte { return data[:len(data)/2] },
		"empty":     func(string, []byte) []byte { return nil },
		"garbage":   func(string, []byte) []byte { return []byte("garbage") },
		"bits flip": func(_ string, data []byte) []byte { return flip(data) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			b := open(t, Config{Dir: dir})
			for i := range 20 {
				if err := b.Publish(t.Context(), alertOf("w", fmt.Sprint(i))); err != nil {
					t.Fatal(err)
				}
			}
			b.Close()
			n := 0
			err := filepath.WalkDir(storeDir(dir), func(path string, e os.DirEntry, err error) error {
				if err != nil || e.IsDir() {
					return err
				}
				data, err := os.ReadFile(path)
				if err != nil {
					return err
				}
				n++
				return os.WriteFile(path, damage(path, data), 0o600)
			})
			if err != nil || n == 0 {
				t.Fatal(n, err)
			}
			damaged(t, dir)
		})
	}
}

func flip(data []byte) []byte {
	for i := 7; i < len(data); i += 97 {
		data[i] ^= 1 << (i % 8)
	}
	return data
}

func TestAStoreThatIsAFileIsMovedAside(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "nats")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(storeDir(dir), []byte("not a directory"), 0o600); err != nil {
		t.Fatal(err)
	}
	damaged(t, dir)
	if _, err := os.Stat(dir + ".corrupt-1"); err != nil {
		t.Error(err)
	}
}

func TestAWipedServerIsFilledAnew(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b := open(t, Config{Dir: dir})
	var named, alone atomic.Int64
	for _, s := range []bus.Subscription{{Consumer: "planner"}, {}} {
		n := &alone
		if s.Consumer != "" {
			n = &named
		}
		s.Kind, s.Handle = trimtab.KindAlert, func(context.Context, bus.Delivery) error { n.Add(1); return nil }
		if _, err := b.Subscribe(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
	k, err := b.Bucket(t.Context(), "leaders")
	if err != nil {
		t.Fatal(err)
	}
	if !holdsStream(t, dir, "KV_leaders") {
		t.Fatal("the files of a stream are elsewhere")
	}
	for round := range int64(3) {
		if err := b.Publish(t.Context(), alertOf("w", "x")); err != nil {
			t.Fatal(err)
		}
		if _, err := k.Put(t.Context(), "p", []byte("x")); err != nil {
			t.Fatal(err)
		}
		until(t, func() bool { return named.Load() >= round+1 && alone.Load() >= round+1 })
		for _, name := range []string{"ALERTS", "ESTIMATES", "KV_leaders"} {
			// One that went after the others had been made anew is still away.
			if err := b.js.DeleteStream(t.Context(), name); err != nil && !isMissing(err) {
				t.Fatal(err)
			}
		}
		// A stream that is made before the server has removed the files of the deleted one has its messages.
		until(t, func() bool { return !holdsStream(t, dir, "KV_leaders") })
		if _, _, err := k.Get(t.Context(), "p"); !errors.Is(err, bus.ErrNotFound) {
			t.Errorf("got %v, want ErrNotFound from a bucket made anew", err)
		}
	}
}

// holdsStream reports whether a server keeps files of a stream in a directory.
func holdsStream(t *testing.T, dir, name string) bool {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(storeDir(dir), "*", "streams", name))
	if err != nil {
		t.Fatal(err)
	}
	return len(found) > 0
}

func until(t *testing.T, cond func() bool) {
	t.Helper()
	deadline := time.After(time.Minute)
	for !cond() {
		select {
		case <-deadline:
			t.Fatal("still not")
		case <-time.After(2 * time.Millisecond):
		}
	}
}

func TestAStoreThatWasClosedCanBeOpenedAlthoughAChildHasACopyOfItsLock(t *testing.T) {
	dir := t.TempDir()
	lock, err := lockDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	n, err := syscall.Dup(int(lock.Fd())) // as a child has one between fork and exec
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = syscall.Close(n) }()
	unlock(lock)
	again, err := lockDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	unlock(again)
}

func TestStreamsAndBucketsFitTheStore(t *testing.T) {
	var sum int64
	for _, r := range Table() {
		if r.Name != "" && r.MaxBytes == 0 {
			t.Errorf("%s has no bound", r.Name)
		}
		sum += r.MaxBytes
	}
	if limit := (Config{}).withDefaults().MaxStore; sum > limit {
		t.Errorf("the table adds up to %d bytes, the store holds %d", sum, limit)
	}
	for _, k := range topic.All() {
		if k.Delivery != topic.Local && !strings.Contains(markdown(), "`trimtab."+string(k.Kind)+".*`") {
			t.Errorf("the table misses %s", k.Kind)
		}
	}
}

func TestLossIsWhatNeverCame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(2, 60).Draw(t, "n")
		arrived := map[uint64]bool{1: true}
		order := []uint64{1}
		for i := uint64(2); i <= uint64(n); i++ {
			if rapid.IntRange(0, 3).Draw(t, "fate") > 0 || i == uint64(n) {
				order = append(order, i)
				arrived[i] = true
			}
		}
		// Swap neighbours and repeat some, as routes may.
		for i := 1; i+1 < len(order); i++ {
			if rapid.Bool().Draw(t, "swap") {
				order[i], order[i+1] = order[i+1], order[i]
			}
		}
		order = append(order, order[rapid.IntRange(0, len(order)-1).Draw(t, "twice")])
		var l losses
		at := time.Unix(1, 0)
		for _, i := range order {
			l.arrived(sequenceID{source: "s"}, i, at)
		}
		want := uint64(n - len(arrived))
		if got := l.total(at.Add(2*lateness), false); got != want {
			t.Fatalf("order %v: lost %d, want %d", order, got, want)
		}
	})
}

func FuzzParseOrigin(f *testing.F) {
	f.Add("a 1 2 3")
	f.Add("=20 18446744073709551615 0 1")
	f.Fuzz(func(t *testing.T, s string) {
		o, place, ok := parseOrigin(s)
		if !ok {
			return
		}
		o2, place2, ok := parseOrigin(formatOrigin(o, place))
		if !ok || o2 != o || place2 != place {
			t.Errorf("%q: %v %d, then %v %d", s, o, place, o2, place2)
		}
	})
}

// TestMain finds what a server that was stopped over this would keep.
func TestTheServerOutlastsWhatIsBeingMade(t *testing.T) {
	t.Parallel()
	for range 10 {
		b := open(t, Config{})
		var makers sync.WaitGroup
		for i := range 4 {
			ctx, giveUp := context.WithCancel(t.Context())
			makers.Go(func() { _, _ = b.Bucket(ctx, fmt.Sprint("bucket", i)) })
			makers.Go(giveUp)
		}
		b.Close()
		makers.Wait()
	}
}
