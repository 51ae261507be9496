package main

import (
	"context"
	_ "embed"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"

	"github.com/trimtab/trimtab/lab/bench/rig"
)

// service is real software that is asked by HTTP for so much work.
type service interface {
	// start runs it in a group, with its files in dir, and returns the address at which it
	// answers.
	start(ctx context.Context, in *rig.Group, dir string) (address string, err error)
	// path asks for so many units of work.
	path(work int) (string, error)
	// close ends it. It may be called however far start came.
	close()
}

// serviceNames are those that there are, in order.
func serviceNames() []string { return []string{"nginx", "node", "postgres"} }

func newService(name string) service {
	switch name {
	case "nginx":
		return &web{}
	case "node":
		return &node{}
	}
	return &database{}
}

// web is an nginx that compresses a text for each request. Work is its length in KiB.
type web struct {
	server *rig.Nginx
	dir    string
}

func (w *web) start(ctx context.Context, in *rig.Group, dir string) (address string, err error) {
	w.dir = filepath.Join(dir, "www")
	if err := os.MkdirAll(w.dir, 0o755); err != nil {
		return "", fmt.Errorf("start nginx: %w", err)
	}
	ready, err := w.path(1)
	if err != nil {
		return "", err
	}
	if w.server, err = rig.StartNginx(ctx, in, dir, rig.Site{HTTP: rig.Gzip, Server: "root " + w.dir + ";", Ready: ready, Most: 1}); err != nil {
		return "", err
	}
	return w.server.Address, nil
}

func (w *web) path(work int) (string, error) {
	name := strconv.Itoa(work)
	if _, err := os.Stat(filepath.Join(w.dir, name)); err == nil {
		return "/" + name, nil
	}
	if err := os.WriteFile(filepath.Join(w.dir, name), rig.Prose(work<<10), 0o644); err != nil {
		return "", fmt.Errorf("write what nginx serves: %w", err)
	}
	return "/" + name, nil
}

func (w *web) close() { w.server.Close() }

// queryPath is the path of a service that reads its work from the query.
func queryPath(work int) (string, error) { return "/?work=" + strconv.Itoa(work), nil }

//go:embed service.js
var nodeService []byte

// node is an API of Node.js. Work is how many lists it writes and reads as JSON.
type node struct{ process *rig.Process }

func (n *node) start(ctx context.Context, in *rig.Group, dir string) (string, error) {
	binary, err := rig.Lookup("node", "nodejs")
	if err != nil {
		return "", err
	}
	file := filepath.Join(dir, "service.js")
	if err := os.WriteFile(file, nodeService, 0o600); err != nil {
		return "", fmt.Errorf("start node: %w", err)
	}
	address, err := rig.FreeAddress()
	if err != nil {
		return "", err
	}
	n.process, err = startAt(ctx, in, dir, "/?work=1", address, binary, file, address)
	return address, err
}

func (n *node) path(work int) (string, error) { return queryPath(work) }

func (n *node) close() { stop(n.process) }

// database is a PostgreSQL behind PgBouncer, behind an HTTP service, all in one group. Work is
// the number of rows in hundreds.
type database struct {
	server       *rig.Postgres
	pooler, http *rig.Process
}

// poolerConf is PgBouncer's configuration: so many sessions with PostgreSQL for all clients.
const poolerConf = `[databases]
postgres = host=%s port=%s dbname=postgres user=bench
[pgbouncer]
listen_addr = %s
listen_port = %s
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = %d
max_client_conn = %d
log_connections = 0
log_disconnections = 0
`

// pooled is how many queries PostgreSQL runs at a time.
const pooled = 4

func (d *database) start(ctx context.Context, in *rig.Group, dir string) (string, error) {
	pgbouncer, err := rig.Lookup("pgbouncer", "pgbouncer")
	if err != nil {
		return "", err
	}
	inner := filepath.Join(dir, "postgres")
	if err := os.MkdirAll(inner, 0o755); err != nil {
		return "", fmt.Errorf("start postgres: %w", err)
	}
	if d.server, err = rig.StartPostgres(ctx, in, inner, 1); err != nil {
		return "", err
	}
	free, err := rig.FreeAddresses(2)
	if err != nil {
		return "", err
	}
	host, port, err := net.SplitHostPort(d.server.Address)
	if err != nil {
		return "", fmt.Errorf("start pgbouncer: %w", err)
	}
	ownHost, ownPort, err := net.SplitHostPort(free[0])
	if err != nil {
		return "", fmt.Errorf("start pgbouncer: %w", err)
	}
	conf := filepath.Join(dir, "pgbouncer.ini")
	if err := os.WriteFile(conf, fmt.Appendf(nil, poolerConf, host, port, ownHost, ownPort, pooled, sqlSessions+100), 0o644); err != nil {
		return "", fmt.Errorf("start pgbouncer: %w", err)
	}
	d.pooler, err = rig.Start(rig.Program{Args: []string{pgbouncer, conf}, Dir: dir, Log: filepath.Join(dir, "pgbouncer.log"), As: d.server.As, Stop: syscall.SIGTERM}, in)
	if err != nil {
		return "", err
	}
	args, err := childArgs(childSQL, "--listen", free[1], "--to", free[0])
	if err != nil {
		return "", err
	}
	d.http, err = startAt(ctx, in, dir, "/?work=1", free[1], args...)
	return free[1], err
}

func (d *database) path(work int) (string, error) { return queryPath(work) }

func (d *database) close() {
	stop(d.http)
	stop(d.pooler)
	d.server.Close()
}

// startAt starts a program in a group, and returns when a path of an address answers.
func startAt(ctx context.Context, in *rig.Group, dir, path, address string, args ...string) (*rig.Process, error) {
	log := filepath.Join(dir, filepath.Base(args[0])+".log")
	return rig.StartAt(ctx, rig.Program{Args: args, Dir: dir, Log: log, Stop: syscall.SIGTERM}, in, "http://"+address+path)
}

// stop ends a process; nil was never started.
func stop(p *rig.Process) {
	if p != nil {
		p.Close()
	}
}

// has says whether a program knows a command.
func has(ctx context.Context, program, command string) bool {
	return exec.CommandContext(ctx, program, command, "--help").Run() == nil
}
