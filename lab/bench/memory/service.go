package main

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/trimtab/trimtab/lab/bench/rig"
)

const (
	// valueKiB is what one user's data take in PostgreSQL and redis, and cacheKiB in the caches of the
	// others: so that each service uses more than the 250 MiB that VPA recommends at least.
	valueKiB, cacheKiB = 128, 320
	// users are as many as there are in all; requests draw from them evenly.
	users = 3000
	// kept is how long the caches of the Go, JVM and Node.js services keep what is not asked for.
	kept = 8 * time.Second
	// sessions are with PostgreSQL and with redis.
	sessions = 16
)

// server is real software that was started.
type server interface {
	// ask sends one request of a user, and waits for the whole answer.
	ask(ctx context.Context, user int) error
	// Done is closed when it has ended.
	Done() <-chan struct{}
	close()
}

// kind says how a service is started and what an operator would give it.
type kind struct {
	name string
	// untouched is the limit that an operator sets, in MiB: about twice what the software's own
	// settings let it hold (maxmemory, -Xmx) or what it held in a test, as a whole number of 256 MiB.
	untouched float64
	// fills says that it keeps what was asked for once, so that it is filled before it is measured.
	fills bool
	start func(ctx context.Context, in *rig.Group, dir string) (server, error)
}

func kinds() []kind {
	return []kind{
		{"postgres", 1024, true, startDatabase}, {"redis", 768, true, startStore},
		{"jvm", 1536, false, startJVM}, {"go", 1024, false, startCache}, {"node", 1024, false, startNode},
	}
}

// service is one of them in a group of its own. When its process dies it is started again.
type service struct {
	kind
	group *rig.Group
	*rig.Memory
	dir string

	mu      sync.RWMutex
	now     server
	closing bool
	watched sync.WaitGroup
}

// openService makes the group and starts the service in it, without a limit.
func openService(ctx context.Context, host *rig.Host, dir string, k kind) (s *service, err error) {
	s = &service{kind: k, dir: filepath.Join(dir, k.name)}
	if err := os.MkdirAll(s.dir, 0o755); err != nil {
		return nil, fmt.Errorf("start %s: %w", k.name, err)
	}
	if s.group, err = host.Group(k.name, weight); err != nil {
		return nil, err
	}
	if err = s.group.Everywhere(); err == nil {
		s.Memory, err = s.group.Memory()
	}
	if err == nil {
		err = s.begin(ctx)
	}
	if err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// begin starts the process, and again whenever it dies.
func (s *service) begin(ctx context.Context) error {
	v, err := s.start(ctx, s.group, s.dir)
	if err != nil {
		return fmt.Errorf("start %s: %w", s.name, err)
	}
	s.mu.Lock()
	if s.closing { // meanwhile
		s.mu.Unlock()
		v.close()
		return nil
	}
	s.now = v
	s.mu.Unlock()
	s.watched.Go(func() {
		<-v.Done()
		s.mu.Lock()
		s.now = nil
		again := !s.closing && ctx.Err() == nil
		s.mu.Unlock()
		v.close()
		for again && s.begin(ctx) != nil {
			// A limit may be too small to start under: the bench raises it.
			time.Sleep(200 * time.Millisecond)
			s.mu.RLock()
			again = !s.closing && ctx.Err() == nil
			s.mu.RUnlock()
		}
	})
	return nil
}

// ask fails while the service is down.
func (s *service) ask(ctx context.Context, user int) error {
	s.mu.RLock()
	now := s.now
	s.mu.RUnlock()
	if now == nil {
		return fmt.Errorf("ask %s: %w", s.name, rig.ErrGone)
	}
	return now.ask(ctx, user)
}

// end ends the process; begin may follow.
func (s *service) end() {
	s.mu.Lock()
	s.closing = true
	now := s.now
	s.mu.Unlock()
	if now != nil {
		now.close()
	}
	s.watched.Wait()
	s.mu.Lock()
	s.closing = false
	s.mu.Unlock()
}

// again starts the service anew under a limit, in bytes; 0: none.
func (s *service) again(ctx context.Context, limit float64) error {
	s.end()
	if err := s.Set(limit); err != nil {
		return err
	}
	return s.begin(ctx)
}

// close ends it and removes its group.
func (s *service) close() {
	if s != nil {
		s.end()
		s.group.Kill()
		_ = s.group.Close() // the bench that comes next sweeps what is left
	}
}

// database is a PostgreSQL with a table of one value for each user, of which it hashes one for each request.
type database struct{ *rig.Postgres }

func startDatabase(ctx context.Context, in *rig.Group, dir string) (server, error) {
	inner := filepath.Join(dir, "postgres")
	if err := os.MkdirAll(inner, 0o755); err != nil {
		return nil, fmt.Errorf("make a directory: %w", err)
	}
	p, err := rig.StartPostgres(ctx, in, inner, sessions, "shared_buffers=128MB", "max_wal_size=64MB", "min_wal_size=32MB")
	if err != nil {
		return nil, err
	}
	err = p.Query(ctx, fmt.Sprintf(`DO $$ BEGIN IF to_regclass('page') IS NULL THEN
CREATE UNLOGGED TABLE page (id int PRIMARY KEY, body text);
ALTER TABLE page ALTER COLUMN body SET STORAGE EXTERNAL;
INSERT INTO page SELECT i, repeat(chr(65 + i %% 26), %d) FROM generate_series(0, %d) AS i;
END IF; END $$`, valueKiB<<10, users-1))
	if err != nil {
		p.Close()
		return nil, err
	}
	return database{p}, nil
}

func (d database) ask(ctx context.Context, user int) error {
	return d.Query(ctx, "SELECT hashtext(body) FROM page WHERE id = "+strconv.Itoa(user))
}

func (d database) close() { d.Postgres.Close() }

// store is a redis that evicts what was not asked for longest.
type store struct{ *rig.Redis }

// storeMiB is redis's maxmemory, less than all users' values.
const storeMiB = 384

func startStore(ctx context.Context, in *rig.Group, dir string) (server, error) {
	r, err := rig.StartRedis(ctx, in, dir, sessions, "--maxmemory", strconv.Itoa(storeMiB)+"mb", "--maxmemory-policy", "allkeys-lru")
	if err != nil {
		return nil, err
	}
	return store{r}, nil
}

func (s store) ask(ctx context.Context, user int) error {
	key := "user:" + strconv.Itoa(user)
	found, err := s.Get(ctx, key)
	if err != nil || found {
		return err
	}
	return s.Set(ctx, key, strings.Repeat("v", valueKiB<<10))
}

func (s store) close() { s.Redis.Close() }

// web is a cache with HTTP before it.
type web struct {
	*rig.Process
	address string
}

func startWeb(ctx context.Context, in *rig.Group, dir string, args ...string) (server, error) {
	address, err := rig.FreeAddress()
	if err != nil {
		return nil, err
	}
	args = append(args, address, strconv.Itoa(cacheKiB<<10), strconv.Itoa(int(kept.Milliseconds())))
	p, err := rig.StartAt(ctx, rig.Program{Args: args, Dir: dir, Log: filepath.Join(dir, "log"), Stop: syscall.SIGTERM}, in, "http://"+address+"/?user=0")
	if err != nil {
		return nil, err
	}
	return web{p, address}, nil
}

func (w web) ask(ctx context.Context, user int) error {
	_, err := rig.Get(ctx, "http://"+w.address+"/?user="+strconv.Itoa(user))
	return err
}

func (w web) close() { w.Close() }

//go:embed Cache.java
var javaSource []byte

//go:embed cache.js
var nodeSource []byte

func startJVM(ctx context.Context, in *rig.Group, dir string) (server, error) {
	java, err := rig.Lookup("java", "openjdk-17-jdk-headless")
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(filepath.Join(dir, "Cache.class")); err != nil {
		javac, err := rig.Lookup("javac", "openjdk-17-jdk-headless")
		if err != nil {
			return nil, err
		}
		file := filepath.Join(dir, "Cache.java")
		if err := os.WriteFile(file, javaSource, 0o600); err != nil {
			return nil, fmt.Errorf("write source: %w", err)
		}
		if out, err := exec.CommandContext(ctx, javac, "-d", dir, file).CombinedOutput(); err != nil {
			return nil, fmt.Errorf("compile: %w\n%s", err, out)
		}
	}
	// Without a choice of its own a JVM takes another collector under a limit below 1792 MiB.
	return startWeb(ctx, in, dir, java, "-Xmx768m", "-XX:+UseG1GC", "-cp", dir, "Cache")
}

func startNode(ctx context.Context, in *rig.Group, dir string) (server, error) {
	node, err := rig.Lookup("node", "nodejs")
	if err != nil {
		return nil, err
	}
	file := filepath.Join(dir, "cache.js")
	if err := os.WriteFile(file, nodeSource, 0o600); err != nil {
		return nil, fmt.Errorf("write source: %w", err)
	}
	return startWeb(ctx, in, dir, node, file)
}

func startCache(ctx context.Context, in *rig.Group, dir string) (server, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find own program: %w", err)
	}
	return startWeb(ctx, in, dir, self, childWord)
}
