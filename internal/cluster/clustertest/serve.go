// Package clustertest runs the NATS server of a site's files in the process of a
// test: the real server, its configuration read from the file as it was written,
// but for the places where it listens and stores. A test that kills a server runs
// it as a process of its own.
package clustertest

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// Serve runs the server whose files are in dir/nats-NAME until the test ends,
// and returns its URL, and the one for leaf nodes. change, when not nil, changes the configuration first.
func Serve(t testing.TB, dir, name string, change func(conf string) string) (url, leaf string) {
	t.Helper()
	at := filepath.Join(dir, "nats-"+name)
	b, err := os.ReadFile(filepath.Join(at, "nats-server.conf"))
	if err != nil {
		t.Fatal(err)
	}
	conf := strings.NewReplacer("/etc/nats/", at+"/", "/var/lib/nats", t.TempDir(), "0.0.0.0:4222", "127.0.0.1:-1", "0.0.0.0:7422", "127.0.0.1:-1").Replace(string(b))
	if change != nil {
		changed := change(conf)
		if changed == conf {
			t.Fatal("nothing changed")
		}
		conf = changed
	}
	s := Start(t, conf)
	if !s.ReadyForConnections(20 * time.Second) {
		t.Fatal("nats-server is not ready")
	}
	v, err := s.Varz(nil)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Replace(s.ClientURL(), "nats://", "tls://", 1), fmt.Sprintf("tls://127.0.0.1:%d", v.LeafNode.Port)
}

// Start starts the server that conf configures; it runs until the test ends.
func Start(t testing.TB, conf string) *server.Server {
	t.Helper()
	file := filepath.Join(t.TempDir(), "nats-server.conf")
	if err := os.WriteFile(file, []byte(conf), 0o600); err != nil {
		t.Fatal(err)
	}
	o, err := server.ProcessConfigFile(file)
	if err != nil {
		t.Fatal(err)
	}
	o.NoSigs, o.NoLog = true, true
	s, err := server.NewServer(o)
	if err != nil {
		t.Fatal(err)
	}
	go s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	return s
}

// process is the first argument of a test binary that is to be a nats-server.
const process = "nats-server"

// Main is what TestMain begins with, so that [Process] can run the test binary as a nats-server:
// it does what the main function of nats-server does, without a build of that one.
func Main() {
	if len(os.Args) < 2 || os.Args[1] != process {
		return
	}
	flags := flag.NewFlagSet(process, flag.ExitOnError)
	options, err := server.ConfigureOptions(flags, os.Args[2:], server.PrintServerAndExit, flags.Usage, server.PrintTLSHelpAndDie)
	if err != nil {
		server.PrintAndDie(err.Error())
	}
	s, err := server.NewServer(options)
	if err != nil {
		server.PrintAndDie(err.Error())
	}
	s.ConfigureLogger()
	if err := server.Run(s); err != nil {
		server.PrintAndDie(err.Error())
	}
	s.WaitForShutdown()
	os.Exit(0)
}

// Process is a nats-server with these arguments as a process of its own; before is what its
// command line begins with, as another program that starts it. TestMain must call [Main].
func Process(before []string, args ...string) *exec.Cmd {
	line := append(append(append([]string{}, before...), os.Args[0], process), args...)
	return exec.Command(line[0], line[1:]...)
}
