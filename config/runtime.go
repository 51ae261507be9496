package config

import (
	"cmp"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"time"
)

// The comments of the fields below are the documentation of the file, as in
// config.go.

// MemoryRuntime names a program in each cgroup that limits its own memory. trimtab tells it before the
// memory limit falls, waits until the memory came back, and tells it after the limit rose. Its settings
// of before come back with the limit. One of jvm, go, redis and postgres.
type MemoryRuntime struct {
	// true: the JVMs in the cgroup (SoftMaxHeapSize, which ZGC and Shenandoah keep to). With ZGC, start them with -XX:ZUncommitDelay=1.
	JVM bool `yaml:"jvm"`
	// Go program (GOMEMLIMIT) that serves the package memlimit at this Unix socket: an absolute path in the root directory of its process.
	Go string `yaml:"go"`
	// Redis (maxmemory), with a maxmemory-policy that evicts.
	Redis *RuntimeServer `yaml:"redis"`
	// PostgreSQL (work_mem and maintenance_work_mem, in proportion, through psql). shared_buffers cannot be changed without a restart.
	Postgres *RuntimeServer `yaml:"postgres"`
	// How long a fall waits for the memory. If it does not come back, the limit stays. Left out: 5s.
	Wait time.Duration `yaml:"wait" want:"100ms to 10s" hint:"the default is 5s"`
}

// RuntimeServer says how to ask a server.
type RuntimeServer struct {
	// Unix socket: an absolute path in the root directory of its process, which for PostgreSQL ends with .s.PGSQL.PORT. For Redis also HOST:PORT.
	Address string `yaml:"address"`
	// User to log in as. Of PostgreSQL it needs the right to ALTER SYSTEM SET both parameters and to execute pg_reload_conf. Left out: the default of the server.
	User string `yaml:"user"`
	// File with the password and nothing else. Left out: none.
	PasswordFile string `yaml:"password_file"`
}

// named lists the programs that are named, by key.
func (r *MemoryRuntime) named() (all []string) {
	for _, p := range []struct {
		key string
		is  bool
	}{{"jvm", r.JVM}, {"go", r.Go != ""}, {"redis", r.Redis != nil}, {"postgres", r.Postgres != nil}} {
		if p.is {
			all = append(all, p.key)
		}
	}
	return all
}

// Program returns which program is told, and how it is reached.
func (r *MemoryRuntime) Program() (kind string, server RuntimeServer) {
	switch kind = r.named()[0]; {
	case r.Redis != nil:
		server = *r.Redis
	case r.Postgres != nil:
		server = *r.Postgres
	default:
		server.Address = r.Go
	}
	return kind, server
}

// fill sets what was left out.
func (r *MemoryRuntime) fill() {
	if r != nil {
		r.Wait = cmp.Or(r.Wait, 5*time.Second)
	}
}

// check checks the section at a path in the file.
func (r *MemoryRuntime) check(v *validator, at string, k *Knob) {
	if r == nil || v.lost(at) {
		return
	}
	named := r.named()
	switch {
	case k.Cgroup == "":
		v.fail(at, "a runtime without a cgroup", "name the cgroup of its processes, or remove runtime: trimtab cannot reach the programs of pods")
		return
	case len(named) == 0:
		v.fail(at, "runtime has neither jvm, go, redis nor postgres", "write jvm: true, go: /run/shop/memlimit.sock, or redis or postgres: {address: …}; Node.js has nothing that could be changed while it runs")
		return
	case len(named) > 1:
		v.fail(at+"."+named[1], "runtime has both "+named[0]+" and "+named[1], "remove one of them")
		return
	}
	if kind, server := r.Program(); kind != "jvm" {
		server.check(v, at+"."+kind, kind, k.Several())
	}
}

func (s *RuntimeServer) check(v *validator, at, kind string, several bool) {
	where := at
	if kind != "go" {
		where = orSection(v, at, "address")
	}
	_, _, bad := net.SplitHostPort(s.Address)
	switch {
	case filepath.IsAbs(s.Address) && len(s.Address) <= 100 && !strings.ContainsAny(s.Address, "\x00\n*"):
		if kind == "postgres" && !strings.HasPrefix(filepath.Base(s.Address), ".s.PGSQL.") {
			v.fail(where, fmt.Sprintf("%q is no socket of PostgreSQL", clip(s.Address)), "write it whole, such as /var/run/postgresql/.s.PGSQL.5432")
		}
	case kind != "redis" || bad != nil:
		hint := "write an absolute path of at most 100 bytes, such as /run/shop/memlimit.sock"
		if kind == "redis" {
			hint = "write an absolute path of at most 100 bytes, or HOST:PORT"
		}
		v.fail(where, fmt.Sprintf("%q is no address", clip(s.Address)), hint)
	case several:
		v.fail(where, "one HOST:PORT for several instances", "write the path of a Unix socket, which each instance has in its own root directory")
	}
	if s.PasswordFile != "" && !filepath.IsAbs(s.PasswordFile) {
		v.fail(at+".password_file", fmt.Sprintf("%q is no absolute path", clip(s.PasswordFile)), "write the whole path of the file")
	}
}
