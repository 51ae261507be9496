//go:build integration

package runtimes

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/trimtab/trimtab/actuator"
	"github.com/trimtab/trimtab/internal/proctest"
)

// program starts a real program that is stopped at the end of the test, and waits until it says ready.
func program(t *testing.T, ready string, as *syscall.Credential, args ...string) *exec.Cmd {
	t.Helper()
	path, err := exec.LookPath(args[0])
	if err != nil {
		t.Skipf("no %s here: %v", args[0], err)
	}
	cmd := exec.Command(path, args[1:]...)
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Credential: as}
	out, err := cmd.StdoutPipe()
	cmd.Stderr = cmd.Stdout
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { end(cmd) })
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if strings.Contains(lines.Text(), ready) {
			go func() {
				for lines.Scan() {
				}
			}()
			return cmd
		}
		t.Log(lines.Text())
	}
	t.Fatalf("%s ended before it was ready", args[0])
	return nil
}

// end kills a program, stopped or not, and waits for it.
func end(cmd *exec.Cmd) {
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
}

func stop(t *testing.T, pid int) func() {
	return func() {
		if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		for range 2000 { // each thread stops when it next enters the kernel
			if stopped(pid) {
				return
			}
			time.Sleep(time.Millisecond)
		}
		t.Fatal("it does not stop")
	}
}

// stopped reports whether all threads of a process are stopped.
func stopped(pid int) bool {
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	for _, thread := range threads {
		text, failed := os.ReadFile(thread)
		_, after, ok := strings.Cut(string(text), ") ")
		if failed != nil || !ok || after[0] != 'T' {
			return false
		}
	}
	return err == nil && len(threads) > 0
}

// only finds the one program of a group of processes.
func only(t *testing.T, at actuator.Runtime, members ...int) Program {
	t.Helper()
	all, err := find(t.Context(), &at, members)
	if err != nil || len(all) != 1 {
		t.Fatalf("found %v, %v", all, err)
	}
	return all[0]
}

// classes compiles the Java service.
func classes(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	path, err := exec.LookPath("javac")
	if err != nil {
		t.Skipf("no javac here: %v", err)
	}
	if out, err := exec.Command(path, "-d", dir, "testdata/Service.java").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return dir
}

func TestARealJVMMeetsTheContractOfPrograms(t *testing.T) {
	dir := classes(t)
	for _, flags := range [][]string{{"-XX:+UseShenandoahGC"}, {"-XX:+UseZGC", "-XX:ZUncommitDelay=1"}} {
		t.Run(flags[0], func(t *testing.T) {
			suite(t, func(t *testing.T) fixture {
				args := append([]string{"java", "-Xms16m", "-Xmx256m"}, flags...)
				start := func() *exec.Cmd { return program(t, "ready", nil, append(args, "-cp", dir, "Service", "400")...) }
				cmd := start()
				return fixture{Program: only(t, actuator.Runtime{Kind: JVM}, cmd.Process.Pid), small: Room{Bytes: 128 << 20, Goal: 256 << 20},
					hang: stop(t, cmd.Process.Pid), replace: func() { end(cmd); start() }}
			})
		})
	}
}

func TestARealGoProgramMeetsTheContractOfPrograms(t *testing.T) {
	suite(t, func(t *testing.T) fixture {
		socket := filepath.Join(proctest.SocketDir(t), "memlimit")
		cmd := serveGo(t, socket)
		return fixture{Program: only(t, actuator.Runtime{Kind: Go, Address: socket}, cmd.Process.Pid, os.Getpid()), small: Room{Bytes: 64 << 20, Goal: 128 << 20},
			hang: stop(t, cmd.Process.Pid), replace: func() { end(cmd); serveGo(t, socket) }}
	})
}

func TestARealRedisMeetsTheContractOfPrograms(t *testing.T) {
	for _, network := range []string{"tcp", "unix"} {
		t.Run(network, func(t *testing.T) {
			suite(t, func(t *testing.T) fixture {
				dir, port := proctest.SocketDir(t), freePort(t)
				at := actuator.Runtime{Kind: Redis, Address: "127.0.0.1:" + port}
				if network == "unix" {
					at.Address = filepath.Join(dir, "redis")
				}
				start := func() *exec.Cmd {
					return program(t, "eady to accept connections", nil, "redis-server", "--port", port, "--unixsocket", filepath.Join(dir, "redis"),
						"--save", "", "--maxmemory", "200mb", "--maxmemory-policy", "allkeys-lru")
				}
				cmd := start()
				return fixture{Program: only(t, at, cmd.Process.Pid), small: Room{Bytes: 100 << 20, Goal: 128 << 20},
					hang: stop(t, cmd.Process.Pid), replace: func() { end(cmd); start() }}
			})
		})
	}
}

func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return port
}

func TestARedisThatEvictsNothingIsNotLowered(t *testing.T) {
	dir := proctest.SocketDir(t)
	cmd := program(t, "eady to accept connections", nil, "redis-server", "--port", "0", "--unixsocket", filepath.Join(dir, "redis"), "--save", "")
	p := only(t, actuator.Runtime{Kind: Redis, Address: filepath.Join(dir, "redis")}, cmd.Process.Pid)
	if err := p.Set(t.Context(), Room{Bytes: 100 << 20}, State{Setting: "0"}); err == nil || !strings.Contains(err.Error(), "noeviction") {
		t.Error(err)
	}
}

func TestARealPostgreSQLMeetsTheContractOfPrograms(t *testing.T) {
	if _, err := exec.LookPath("psql"); err != nil {
		t.Skipf("no psql here: %v", err)
	}
	suite(t, func(t *testing.T) fixture {
		dir, bin, as := postgresHome(t)
		socket := filepath.Join(dir, ".s.PGSQL.5432")
		start := func() *exec.Cmd {
			_ = os.Remove(filepath.Join(dir, "data", "postmaster.pid"))
			return program(t, "ready to accept connections", as, filepath.Join(bin, "postgres"), "-D", filepath.Join(dir, "data"), "-c", "listen_addresses=",
				"-c", "unix_socket_directories="+dir, "-c", "shared_buffers=32MB", "-c", "fsync=off")
		}
		cmd := start()
		return fixture{Program: only(t, actuator.Runtime{Kind: Postgres, Address: socket, User: "test"}, cmd.Process.Pid),
			small: Room{Bytes: 200 << 20, Goal: 300 << 20, Before: 512 << 20},
			hang:  stop(t, cmd.Process.Pid),
			replace: func() {
				_ = cmd.Process.Signal(syscall.SIGQUIT)
				_ = cmd.Wait()
				start()
			}}
	})
}

// postgresHome makes a database in a directory, for the user that PostgreSQL runs as.
func postgresHome(t *testing.T) (dir, bin string, as *syscall.Credential) {
	t.Helper()
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin")
	if err != nil || len(found) == 0 {
		t.Skip("no PostgreSQL here: apt-get install postgresql")
	}
	bin, dir = found[len(found)-1], proctest.SocketDir(t)
	if os.Geteuid() == 0 {
		out, err := exec.Command("id", "-u", "postgres").Output()
		uid, bad := strconv.Atoi(strings.TrimSpace(string(out)))
		if err != nil || bad != nil {
			t.Skipf("no user postgres here: %v", err)
		}
		as = &syscall.Credential{Uid: uint32(uid), Gid: uint32(uid)}
		if err := os.Chown(dir, uid, uid); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command(filepath.Join(bin, "initdb"), "-D", filepath.Join(dir, "data"), "-A", "trust", "-U", "test", "--no-sync")
	cmd.Dir, cmd.SysProcAttr = "/", &syscall.SysProcAttr{Credential: as}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return dir, bin, as
}
