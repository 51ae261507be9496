package natsbus

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/bus"
	"github.com/trimtab/trimtab/internal/trial"
)

const (
	// storeEnv makes the next test open a store in a process of its own.
	storeEnv = "TRIMTAB_TEST_STORE"
	// memoryBound is what a process may take that opens a small store.
	memoryBound = 400 << 20
	// startBound is generous: 30 s for a server that does not start, and the
	// start of another.
	startBound = 90 * time.Second
)

// fillStore makes a store with all kinds of files: streams, buckets, consumers
// that have nothing left, that wait for an acknowledgement, and that were
// delivered the same message again.
func fillStore(t *testing.T, dir string) {
	t.Helper()
	b := open(t, Config{Dir: dir})
	defer b.Close()
	k, err := b.Bucket(t.Context(), "leaders")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := k.Put(t.Context(), "p", []byte("x")); err != nil {
		t.Fatal(err)
	}
	for i := range 30 {
		if err := b.Publish(t.Context(), alertOf("w"+strconv.Itoa(i%3), strconv.Itoa(i))); err != nil {
			t.Fatal(err)
		}
	}
	got := make(chan int, 100)
	for _, s := range []struct {
		name string
		err  error
		want int
	}{{"reader", nil, 30}, {"stuck", errors.New("later"), 3}} {
		stop, err := b.Subscribe(t.Context(), bus.Subscription{Kind: trimtab.KindAlert, Consumer: s.name, Handle: func(context.Context, bus.Delivery) error {
			got <- 1
			return s.err
		}})
		if err != nil {
			t.Fatal(err)
		}
		for range s.want {
			<-got
		}
		stop()
	}
}

// digits differ from file to file of one kind, and so do names.
var digits = regexp.MustCompile(`[0-9]+`)

// kindsOf groups the files below a store by what they are: the same file of two
// streams is one kind.
func kindsOf(t *testing.T, dir string) map[string][]string {
	t.Helper()
	kinds := map[string][]string{}
	err := filepath.WalkDir(storeDir(dir), func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		if info, err := e.Info(); err != nil || info.Size() == 0 {
			return err
		}
		kind := digits.ReplaceAllString(filepath.Base(path), "N")
		if consumerOf(path) != "" {
			kind = "consumer " + kind
		}
		rel, err := filepath.Rel(dir, path)
		kinds[kind] = append(kinds[kind], rel)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return kinds
}

// openElsewhere opens the store in a process of its own, publishes and receives
// there, and returns what it took.
func openElsewhere(t *testing.T, dir string) (took time.Duration, memory int64, out string, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), startBound+30*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestAStoreOfAnotherTest$", "-test.v")
	cmd.Env = append(os.Environ(), storeEnv+"="+dir)
	b, err := cmd.CombinedOutput()
	out = string(b)
	for line := range strings.Lines(out) {
		var ns int64
		if n, _ := fmt.Sscanf(line, "opened in %d ns with %d bytes", &ns, &memory); n == 2 {
			took = time.Duration(ns)
		}
	}
	return took, memory, out, err
}

// limitMemory lets the process die before it takes the machine down.
func limitMemory(t *testing.T) {
	t.Helper()
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "-race" && s.Value == "true" {
				return // the detector reserves terabytes
			}
		}
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_AS, &syscall.Rlimit{Cur: 6 << 30, Max: 6 << 30}); err != nil {
		t.Fatal(err)
	}
}

func TestAStoreOfAnotherTest(t *testing.T) {
	dir := os.Getenv(storeEnv)
	if dir == "" {
		t.Skip("no other test started this process: " + storeEnv + " is not set")
	}
	limitMemory(t)
	began := time.Now()
	b := open(t, Config{Dir: dir})
	got := make(chan string, 1000)
	for _, name := range []string{"reader", "stuck", ""} {
		if _, err := b.Subscribe(t.Context(), bus.Subscription{Kind: trimtab.KindAlert, Consumer: name, Handle: func(_ context.Context, d bus.Delivery) error {
			if d.Value.(*trimtab.Alert).Name == "after" {
				got <- name
			}
			return nil
		}}); err != nil {
			t.Fatal(err)
		}
	}
	k, err := b.Bucket(t.Context(), "leaders")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := k.Put(t.Context(), "p", []byte("y")); err != nil {
		t.Fatal(err)
	}
	if err := b.Publish(t.Context(), alertOf("w0", "after")); err != nil {
		t.Fatal(err)
	}
	heard := map[string]bool{}
	for len(heard) < 3 {
		select {
		case name := <-got:
			heard[name] = true
		case <-time.After(time.Minute):
			t.Fatalf("only %v heard what was published", heard)
		}
	}
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	_, peak, _ := strings.Cut(string(status), "VmHWM:")
	var kib int64
	if _, err := fmt.Sscan(peak, &kib); err != nil {
		t.Fatal(err)
	}
	fmt.Printf("\nopened in %d ns with %d bytes\n", time.Since(began), kib<<10)
}

func TestADamagedStoreCostsTimeAndBoundedMemory(t *testing.T) {
	t.Parallel()
	// As many as there are kinds of files, and some more.
	tr := trial.Start(t, 20)
	random := tr.Rand
	whole := t.TempDir()
	fillStore(t, whole)
	kinds := kindsOf(t, whole)
	names := slices.Sorted(maps.Keys(kinds))
	for _, want := range []string{"N.blk", "index.db", "meta.inf", "meta.sum", "consumer meta.inf", "consumer meta.sum", "consumer o.dat"} {
		if len(kinds[want]) == 0 {
			t.Fatalf("the store has no %s, only %v", want, names)
		}
	}
	var most int64
	for i := range tr.N {
		files := kinds[names[i%len(names)]]
		file := files[random.IntN(len(files))]
		dir := filepath.Join(t.TempDir(), "store")
		if err := os.CopyFS(dir, os.DirFS(whole)); err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil {
			t.Fatal(err)
		}
		at, bit := random.IntN(len(b)), random.IntN(8)
		b[at] ^= 1 << bit
		if err := os.WriteFile(filepath.Join(dir, file), b, 0o600); err != nil {
			t.Fatal(err)
		}
		took, memory, out, err := openElsewhere(t, dir)
		if err != nil || took > startBound || memory > memoryBound {
			tr.Failf("bit %d of byte %d of %s: %v, opened in %v with %d MiB\n%.3000s", bit, at, file, err, took, memory>>20, out)
		}
		most = max(most, memory)
		tr.Took(took)
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
	}
	tr.Notef("%d flipped bits: most memory %d MiB", tr.N, most>>20)
}

// sentAt is a time of a consumer's state, as nats-server prints it.
func sentAt(t time.Time) uint64 { return uint64(t.Unix()) << 1 }

// state prints a consumer's state as nats-server does.
func state(numbers ...uint64) []byte {
	b := []byte{22, 2}
	for _, n := range numbers {
		b = binary.AppendUvarint(b, n)
	}
	return b
}

func TestAConsumerThatClaimsToWaitForBillionsIsForgottenBeforeTheServerReadsIt(t *testing.T) {
	sent := sentAt(time.Now())
	for name, c := range map[string]struct {
		file []byte
		good bool
	}{
		"waits for a message of tomorrow": {state(4, 4, 5, 5, 1, sentAt(time.Now().Add(24*time.Hour)), 1, 1, 2, 0), false},
		"nothing yet":                     {nil, true},
		"all acknowledged":                {state(30, 30, 30, 30, 0, 0), true},
		"one waits":                       {state(4, 4, 5, 5, 1, sent, 1, 1, 2, 0), true},
		"one was delivered again":         {state(4, 4, 9, 5, 1, sent, 1, 1, 2, 1, 1, 5), true},
		"waits for a billion":             {state(4, 4, 5, 5, 1<<30, sent, 1, 1, 2, 0), false},
		"a billion were delivered again":  {state(4, 4, 5, 5, 0, 1<<30), false},
		"waits for what was not sent":     {state(4, 4, 5, 5, 1, sent, 9, 1, 2, 0), false},
		"rolls backwards":                 {state(4, 1<<63, 5, 5, 0, 0), false},
		"cut off":                         {state(4, 4, 5, 5), false},
		"something follows":               {state(4, 4, 5, 5, 0, 0, 0), false},
		"no magic number":                 {[]byte{23, 2, 0}, false},
		"a number without an end":         {append([]byte{22, 2}, bytes.Repeat([]byte{0xff}, 30)...), false},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			obs := filepath.Join(storeDir(dir), "$G", "streams", "ALERTS", "obs", "planner")
			if err := os.MkdirAll(obs, 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(obs, "o.dat"), c.file, 0o600); err != nil {
				t.Fatal(err)
			}
			removed, err := checkStore(storeDir(dir))
			if err != nil || (len(removed) == 0) != c.good {
				t.Errorf("removed %v, %v, want good: %v", removed, err, c.good)
			}
			if _, err := os.Stat(obs); (err == nil) != c.good {
				t.Errorf("the consumer: %v", err)
			}
		})
	}
}

func TestAFileThatNoServerLeavesMovesTheStoreAside(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "nats")
	fillStore(t, dir)
	files := kindsOf(t, dir)["index.db"]
	if err := os.Truncate(filepath.Join(dir, files[0]), 20<<30); err != nil { // of holes
		t.Fatal(err)
	}
	damaged(t, dir)
	if _, err := os.Stat(dir + ".corrupt-1"); err != nil {
		t.Error(err)
	}
}

func TestTwoStoresAreKeptThatWereMovedAsideTheNewest(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "nats")
	for range 4 {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.RemoveAll(storeDir(dir)); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(storeDir(dir), []byte("not a directory"), 0o600); err != nil {
			t.Fatal(err)
		}
		b := open(t, Config{Dir: dir})
		if stores, _ := b.Damaged(); stores != 1 {
			t.Errorf("%d stores are counted as damaged", stores)
		}
		b.Close()
	}
	aside, err := filepath.Glob(dir + ".corrupt-*")
	if want := []string{dir + ".corrupt-3", dir + ".corrupt-4"}; err != nil || !slices.Equal(aside, want) {
		t.Errorf("%v %v, want %v", aside, err, want)
	}
}

// serveIn starts a nats-server on a store, as a site's own would.
func serveIn(t *testing.T, dir string) *server.Server {
	t.Helper()
	s, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, StoreDir: dir, NoSigs: true, NoLog: true, JetStream: true})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	if !s.ReadyForConnections(time.Minute) {
		t.Fatal("the server does not start")
	}
	return s
}

func TestADamagedConsumerOfAnExternalServerIsReplaced(t *testing.T) {
	for _, file := range []string{"meta.inf", "meta.sum", "o.dat"} {
		t.Run(file, func(t *testing.T) {
			dir := t.TempDir()
			hear := func(s *server.Server, want string) {
				t.Helper()
				b := open(t, Config{URL: "nats://" + s.Addr().String()})
				defer b.Close()
				got := hears(t, b, "actuator")
				sendUntilStored(t, b, commandBy(want))
				for next(t, got) != want {
				}
			}
			s := serveIn(t, dir)
			hear(s, "before")
			s.Shutdown()
			s.WaitForShutdown()
			path := filepath.Join(dir, "jetstream", "$G", "streams", "COMMANDS", "obs", "actuator", file)
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			b[0] ^= 1
			if err := os.WriteFile(path, b, 0o600); err != nil {
				t.Fatal(err)
			}
			// Twice: whatever took its place must be found again.
			for _, want := range []string{"after", "and after that"} {
				s = serveIn(t, dir)
				hear(s, want)
				s.Shutdown()
				s.WaitForShutdown()
			}
		})
	}
}

func TestAConsumerWithASettingThatTheServerDoesNotChangeIsMadeAnew(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "nats")
	b := open(t, Config{Dir: dir})
	stream, err := b.js.Stream(t.Context(), "COMMANDS")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stream.CreateConsumer(t.Context(), jetstream.ConsumerConfig{Durable: "actuator", AckPolicy: jetstream.AckExplicitPolicy, MaxWaiting: 7}); err != nil {
		t.Fatal(err)
	}
	got := hears(t, b, "actuator")
	sendUntilStored(t, b, commandBy("x"))
	next(t, got)
	if stores, consumers := b.Damaged(); stores != 0 || consumers != 1 {
		t.Errorf("%d stores and %d consumers are counted as damaged", stores, consumers)
	}
}

func TestAConsumerAheadOfItsStreamIsNotDeaf(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "nats")
	b := open(t, Config{Dir: dir})
	got := hears(t, b, "actuator")
	sendUntilStored(t, b, commandBy("before"))
	next(t, got)
	b.Close()
	file := filepath.Join(storeDir(dir), "$G", "streams", "COMMANDS", "obs", "actuator", "o.dat")
	if err := os.WriteFile(file, state(1, 1<<20, 1, 1<<20, 0, 0), 0o600); err != nil {
		t.Fatal(err)
	}
	b = open(t, Config{Dir: dir})
	got = hears(t, b, "actuator")
	sendUntilStored(t, b, commandBy("after"))
	for next(t, got) != "after" {
	}
}

// The server takes what a consumer's file says of its subject as it stands there.
func TestAConsumerWhoseStoredSubjectIsDamagedIsNotDeaf(t *testing.T) {
	for _, age := range []time.Duration{0, time.Hour} {
		t.Run(fmt.Sprint("at most ", age, " old"), func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "nats")
			hear := func(want string, fresh bool) {
				t.Helper()
				b := open(t, Config{Dir: dir, Listen: "127.0.0.1:0"}) // else a group with MaxAge has no file
				defer b.Close()
				got := make(chan string, 100)
				if _, err := b.Subscribe(t.Context(), bus.Subscription{Kind: trimtab.KindAlert, Consumer: "planner", Key: "a", MaxAge: age, Handle: func(_ context.Context, d bus.Delivery) error {
					got <- d.Value.(*trimtab.Alert).Name
					return nil
				}}); err != nil {
					t.Fatal(err)
				}
				if err := b.Publish(t.Context(), alertOf("a", want)); err != nil {
					t.Fatal(err)
				}
				for next(t, got) != want {
				}
				if _, consumers := b.Damaged(); fresh && consumers != 0 {
					t.Errorf("%d consumers are counted as damaged", consumers)
				}
			}
			hear("before", true)
			hear("again", true)
			file := filepath.Join(storeDir(dir), "$G", "streams", "ALERTS", "obs", "planner--a", "meta.inf")
			meta, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			damaged := bytes.Replace(meta, []byte("alert.a"), []byte("alert.q"), 1)
			if bytes.Equal(damaged, meta) {
				t.Fatalf("no subject in %s", meta)
			}
			if err := os.WriteFile(file, damaged, 0o600); err != nil {
				t.Fatal(err)
			}
			hear("after", false)
		})
	}
}

// The server leaves out a consumer of which it cannot read a setting, and makes no other in
// its place: nobody would get a message.
func TestAConsumerWithASettingThatTheServerCannotReadIsNotDeaf(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "nats")
	b := open(t, Config{Dir: dir})
	got := hears(t, b, "actuator")
	sendUntilStored(t, b, commandBy("before"))
	next(t, got)
	b.Close()
	file := filepath.Join(storeDir(dir), "$G", "streams", "COMMANDS", "obs", "actuator", "meta.inf")
	meta, err := os.ReadFile(file)
	if err == nil && !bytes.Contains(meta, []byte(`"instant"`)) {
		t.Fatalf("%s", meta)
	}
	if err == nil {
		err = os.WriteFile(file, bytes.Replace(meta, []byte(`"instant"`), []byte(`"iNstant"`), 1), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	if removed, err := checkStore(storeDir(dir)); err != nil || len(removed) != 1 {
		t.Errorf("removed %v, %v", removed, err)
	}
	b = open(t, Config{Dir: dir})
	got = hears(t, b, "actuator")
	sendUntilStored(t, b, commandBy("after"))
	for next(t, got) != "after" {
	}
}
