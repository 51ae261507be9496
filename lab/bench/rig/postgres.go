package rig

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// Postgres is a PostgreSQL that runs a query for each request.
type Postgres struct {
	Address string
	// As is the user that it runs as; nil: that of this process.
	As      *syscall.Credential
	process *Process
	pool    *Sessions
}

// StartPostgres starts it in a group with a database in dir, to be asked over so many
// sessions, and returns when it answers. More settings, "name=value", replace those of the benches.
func StartPostgres(ctx context.Context, in *Group, dir string, sessions int, more ...string) (*Postgres, error) {
	address, err := FreeAddress()
	if err != nil {
		return nil, err
	}
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("start postgres: %w", err)
	}
	bin, as, err := PostgresHome()
	if err != nil {
		return nil, err
	}
	if as != nil {
		if err := os.Chown(dir, int(as.Uid), int(as.Gid)); err != nil {
			return nil, fmt.Errorf("start postgres: %w", err)
		}
	}
	data := filepath.Join(dir, "data")
	if _, err := os.Stat(data); err != nil {
		cmd := exec.CommandContext(ctx, filepath.Join(bin, "initdb"), "-D", data, "-A", "trust", "-U", "bench", "--no-sync", "-E", "UTF8", "--locale", "C")
		cmd.Dir, cmd.SysProcAttr = dir, &syscall.SysProcAttr{Credential: as, Setpgid: true}
		if out, err := cmd.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("make a database: %w\n%s", err, out)
		}
	}
	args := []string{filepath.Join(bin, "postgres"), "-D", data}
	for _, set := range append([]string{
		"listen_addresses=127.0.0.1", "port=" + port, "unix_socket_directories=", "fsync=off", "jit=off", "autovacuum=off",
		"max_parallel_workers_per_gather=0", "shared_buffers=32MB", "work_mem=64MB", "max_connections=40",
	}, more...) {
		args = append(args, "-c", set)
	}
	// SIGINT: PostgreSQL's fast shutdown.
	process, err := Start(Program{Args: args, Dir: dir, Log: filepath.Join(dir, "..", "postgres.log"), As: as, Stop: syscall.SIGINT}, in)
	if err != nil {
		return nil, err
	}
	p := &Postgres{address, as, process, NewSessions(address, sessions)}
	if err := process.Await(ctx, func(ctx context.Context) error { return p.Sum(ctx, 1) }); err != nil {
		p.Close()
		return nil, err
	}
	return p, nil
}

// PostgresHome finds the newest PostgreSQL's programs, and who runs them:
// PostgreSQL refuses to be root.
func PostgresHome() (bin string, as *syscall.Credential, err error) {
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/postgres")
	if err != nil || len(found) == 0 {
		path, err := exec.LookPath("postgres")
		if err != nil {
			return "", nil, fmt.Errorf("no postgres here: apt-get install postgresql: %w", err)
		}
		found = []string{path}
	}
	bin = filepath.Dir(found[len(found)-1])
	if os.Geteuid() != 0 {
		return bin, nil, nil
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		return "", nil, fmt.Errorf("find whom to run postgres as: %w", err)
	}
	uid, errU := strconv.ParseUint(u.Uid, 10, 32)
	gid, errG := strconv.ParseUint(u.Gid, 10, 32)
	if err := errors.Join(errU, errG); err != nil {
		return "", nil, fmt.Errorf("find whom to run postgres as: %w", err)
	}
	return bin, &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
}

// login opens a session: the start-up message of protocol 3.0, without a
// password, and everything up to ReadyForQuery.
func login(ctx context.Context, address string) (net.Conn, error) {
	c, err := Dial(ctx, address)
	if err != nil {
		return nil, err
	}
	body := "\x00\x03\x00\x00" + "user\x00bench\x00database\x00postgres\x00\x00"
	if _, err = c.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(body)+4)), body...)); err == nil {
		err = untilReady(c)
	}
	if err != nil {
		c.Close()
		return nil, fmt.Errorf("log in to postgres: %w", err)
	}
	return c, nil
}

// Sessions are at most so many sessions with a PostgreSQL, or with a pooler before it.
type Sessions struct{ *Connections }

// NewSessions makes them, without opening one.
func NewSessions(address string, most int) *Sessions {
	return &Sessions{NewConnections(most, func(ctx context.Context) (net.Conn, error) { return login(ctx, address) })}
}

// Sum asks for the sum of so many square roots, and waits for the answer.
func (s *Sessions) Sum(ctx context.Context, rows int) error {
	// As a column of a subquery the series is not stored: memory that is
	// got and given back makes the cost of a query uneven.
	return s.Query(ctx, "SELECT sum(sqrt(i)) FROM (SELECT generate_series(1, "+strconv.Itoa(rows)+") AS i) AS s")
}

// Query sends a query of one or more statements, and waits for the end of the answer.
func (s *Sessions) Query(ctx context.Context, query string) error {
	return s.Use(ctx, func(c *Connection) error {
		query += "\x00"
		message := append([]byte{'Q'}, binary.BigEndian.AppendUint32(nil, uint32(len(query)+4))...)
		if _, err := c.Write(append(message, query...)); err != nil {
			return fmt.Errorf("ask postgres: %w", err)
		}
		return untilReady(c.In)
	})
}

// untilReady reads messages (a kind, a length that counts itself, a body) up
// to ReadyForQuery, 'Z'. An ErrorResponse, 'E', is an error.
func untilReady(in io.Reader) error {
	var failed error
	for {
		var head [5]byte
		if _, err := io.ReadFull(in, head[:]); err != nil {
			return fmt.Errorf("read from postgres: %w", errors.Join(err, failed))
		}
		n := binary.BigEndian.Uint32(head[1:])
		if n < 4 || n > 1<<20 {
			return fmt.Errorf("read from postgres: a message of %d bytes: %w", n, ErrAnswer)
		}
		body := make([]byte, n-4)
		if _, err := io.ReadFull(in, body); err != nil {
			return fmt.Errorf("read from postgres: %w", err)
		}
		switch head[0] {
		case 'E':
			failed = fmt.Errorf("postgres says %q: %w", strings.ReplaceAll(string(body), "\x00", " "), ErrAnswer)
		case 'Z':
			return failed
		}
	}
}

// Sum asks as [Sessions.Sum] does.
func (p *Postgres) Sum(ctx context.Context, rows int) error { return p.pool.Sum(ctx, rows) }

// Query asks as [Sessions.Query] does.
func (p *Postgres) Query(ctx context.Context, query string) error { return p.pool.Query(ctx, query) }

// Done is closed when it has ended.
func (p *Postgres) Done() <-chan struct{} { return p.process.Done() }

// Close ends it; nil was never started.
func (p *Postgres) Close() {
	if p != nil {
		p.pool.Close()
		p.process.Close()
	}
}
