package natsbus

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/internal/hostfs"
)

const (
	// MaxPayload is the largest message, in bytes: the max_payload of a NATS server must
	// be at least this.
	MaxPayload = 8 << 20
	// syncEvery is how often the store is synced to disk: a power cut loses what was acknowledged
	// since then.
	syncEvery = 5 * time.Second
	// readyWithin bounds the start; typical is 30 ms, more with a full store.
	readyWithin = 30 * time.Second
	// stopWithin bounds the end of a server that did not start well, or when the process
	// ends.
	stopWithin = 10 * time.Second
	// keptAside is how many damaged stores are kept after they were moved aside.
	keptAside = 2
)

// embedded is a nats-server inside this process, with the lock on its store.
type embedded struct {
	*server.Server
	lock *os.File
	log  *serverLog
	// stores and consumers count those that were damaged and created again at the start.
	stores, consumers uint64
}

// startEmbedded starts the server on c.Dir. If no server can have left the store in this state, or
// if the server does not start on it in time, startEmbedded moves the store to <dir>.corrupt-N and
// starts on an empty one.
func startEmbedded(c Config) (*embedded, error) {
	lock, err := lockDir(c.Dir)
	if err != nil {
		return nil, err
	}
	removed, err := checkStore(storeDir(c.Dir))
	for _, what := range removed {
		c.Logger.Error("bus consumer's state is damaged: forgotten, it starts over", "consumer", what)
	}
	var s *server.Server
	var log *serverLog
	if err == nil {
		s, log, err = startServer(c)
	}
	var stores uint64
	if err != nil && !isListen(err) {
		stores = 1
		s, log, err = startAside(c, err)
	}
	if err != nil {
		unlock(lock)
		return nil, err
	}
	return &embedded{Server: s, lock: lock, log: log, stores: stores, consumers: uint64(len(removed))}, nil
}

// startAside moves the store aside because of cause and starts on a new one.
func startAside(c Config, cause error) (*server.Server, *serverLog, error) {
	if err := startOver(c, cause); err != nil {
		return nil, nil, errors.Join(cause, err)
	}
	return startServer(c)
}

// startOver moves the store aside; cause says why.
func startOver(c Config, cause error) error {
	to, err := moveAside(c.Dir)
	if err == nil {
		c.Logger.Error("bus store is corrupt: moved it aside, starting with an empty one", "moved_to", to, "err", cause)
	}
	return err
}

// close stops the server and releases the lock on the store.
func (e *embedded) close() {
	e.Shutdown()
	e.WaitForShutdown()
	unlock(e.lock)
}

// lockDir makes dir, proves that it can be written, and locks it against
// another process.
func lockDir(dir string) (*os.File, error) {
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return nil, fmt.Errorf("make bus store %s: %w", dir, err)
	}
	f, _, err := hostfs.OpenOwn(filepath.Join(dir, "lock"))
	if err != nil {
		return nil, fmt.Errorf("open bus store %s: %w", dir, err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		return nil, fmt.Errorf("lock bus store %s: another process uses it: %w: %w", dir, trimtab.ErrRefused, err)
	}
	if err := probe(f); err != nil {
		f.Close()
		return nil, fmt.Errorf("write bus store %s: %w", dir, err)
	}
	return f, nil
}

// unlock releases the lock, even if a forked child that did not start its program yet still has
// the file.
func unlock(f *os.File) {
	_ = syscall.Flock(int(f.Fd()), syscall.LOCK_UN) // closing does it too, later perhaps
	f.Close()
}

// probe writes as much as the empty streams need, so that a full disk is reported as such, not as
// a stream that cannot be created.
func probe(f *os.File) error {
	_, err := f.WriteAt(make([]byte, 256<<10), 0)
	return errors.Join(err, f.Sync(), f.Truncate(0))
}

// moveAside renames the store inside dir to <dir>.corrupt-N, with N one more than the highest so
// far, and removes all but the newest keptAside of them: a store that is damaged repeatedly must
// not fill the disk.
func moveAside(dir string) (string, error) {
	prefix := filepath.Clean(dir) + ".corrupt-"
	aside, err := filepath.Glob(prefix + "*")
	if err != nil {
		return "", fmt.Errorf("move bus store aside: %w", err)
	}
	numbers := []int{0}
	for _, path := range aside {
		if n, err := strconv.Atoi(strings.TrimPrefix(path, prefix)); err == nil && n > 0 {
			numbers = append(numbers, n)
		}
	}
	slices.Sort(numbers)
	last := numbers[len(numbers)-1] + 1
	to := prefix + strconv.Itoa(last)
	if err := os.Rename(storeDir(dir), to); err != nil {
		return "", fmt.Errorf("move bus store aside: %w", err)
	}
	for _, n := range numbers[1:] {
		if n <= last-keptAside {
			if err := os.RemoveAll(prefix + strconv.Itoa(n)); err != nil {
				return to, fmt.Errorf("remove old bus store: %w", err)
			}
		}
	}
	return to, nil
}

// isBrokenConsumer reports whether the server has files of a consumer that it cannot read. The
// server ignores such a consumer at its start, and reports it only when it is created again.
func isBrokenConsumer(err error) bool {
	var api *jetstream.APIError
	return errors.As(err, &api) && api.ErrorCode == consumerCreate
}

// consumerCreate is the server's number for a consumer that it cannot make.
const consumerCreate = 10012

// forgetConsumer removes what the server stored of a consumer that it does not
// run.
func (e *embedded) forgetConsumer(stream, name string) error {
	dir := filepath.Join(e.StoreDir(), server.DEFAULT_GLOBAL_ACCOUNT, "streams", stream, "obs", name)
	if err := os.RemoveAll(dir); err != nil {
		return fmt.Errorf("forget corrupt bus consumer: %w", err)
	}
	return nil
}

// storeDir is where nats-server keeps its files in dir, beside the lock.
func storeDir(dir string) string { return filepath.Join(dir, "jetstream") }

// errListen marks an address that cannot be listened on.
var errListen = errors.New("cannot listen")

func isListen(err error) bool { return errors.Is(err, errListen) }

func startServer(c Config) (*server.Server, *serverLog, error) {
	opts := &server.Options{
		ServerName: "trimtab-" + strconv.Itoa(os.Getpid()), DontListen: c.Listen == "",
		NoSigs: true, NoLog: true, MaxPayload: MaxPayload,
		JetStream: true, StoreDir: c.Dir, SyncInterval: syncEvery,
		JetStreamMaxStore: c.MaxStore, JetStreamMaxMemory: 16 << 20,
		MaxControlLine: 8 << 10, MaxPending: 64 << 20,
		MaxClosedClients: 16, // kept for monitoring; the default is 10,000
	}
	if c.Listen != "" {
		if err := listenOn(opts, c.Listen); err != nil {
			return nil, nil, err
		}
	}
	s, err := server.NewServer(opts)
	if err != nil {
		return nil, nil, fmt.Errorf("make embedded nats-server: %w", err)
	}
	log := &serverLog{log: c.Logger}
	s.SetLoggerV2(log, false, false, false)
	// Start reads the whole store, and a damaged one could take it for ever.
	started := make(chan struct{})
	go func() {
		defer close(started)
		s.Start()
	}()
	ready := false
	for deadline := time.Now().Add(readyWithin); !ready && log.died() == nil && time.Now().Before(deadline); {
		ready = s.ReadyForConnections(200 * time.Millisecond)
	}
	if err := log.unusable(); err != nil || !ready {
		stopLate(s, started)
		if err == nil {
			err = fmt.Errorf("not ready in %v", readyWithin)
		}
		if strings.Contains(err.Error(), "listening on port") {
			return nil, nil, fmt.Errorf("start embedded nats-server on %s: %w: %w", c.Listen, errListen, err)
		}
		return nil, nil, fmt.Errorf("start embedded nats-server in %s: %w", c.Dir, err)
	}
	return s, log, nil
}

// stopLate stops a server that did not start well. If its start does not return, the server and
// its goroutines are abandoned, since nothing can end them, and its store is moved aside.
func stopLate(s *server.Server, started <-chan struct{}) {
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		<-started
		s.Shutdown()
		s.WaitForShutdown()
	}()
	late := time.NewTimer(stopWithin)
	defer late.Stop()
	select {
	case <-stopped:
	case <-late.C:
	}
}

// listenOn sets the address, after a look whether it is free: the server
// itself would wait for the whole of readyWithin.
func listenOn(opts *server.Options, address string) error {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return fmt.Errorf("listen on %s for the bus: %w: %w", address, errListen, err)
	}
	defer l.Close()
	a := l.Addr().(*net.TCPAddr)
	opts.Host, opts.Port = a.IP.String(), a.Port
	return nil
}
